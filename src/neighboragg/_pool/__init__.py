"""From evidence about each class to a trust vector, for predictions and for labels."""
