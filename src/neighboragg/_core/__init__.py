"""What every room may use: types, checks, inputs, files, threads, progress."""
