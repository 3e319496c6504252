"""A local page that shows what the loop sees and decides."""
