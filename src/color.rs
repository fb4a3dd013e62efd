//! Colours: sRGB, CIELAB, distances and hue groups.
