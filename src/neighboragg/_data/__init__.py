"""Rows from files, frames, folders of images and data sets, and labels as text."""
