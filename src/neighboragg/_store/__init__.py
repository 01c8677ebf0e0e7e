"""Save and load: one safetensors file with a digest, never a pickle."""
