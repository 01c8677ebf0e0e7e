"""Rows from anywhere: files, frames, folders of images and data sets, and labels as text."""
