//! Windfall inside another autoscaler, which keeps its own actuation.
