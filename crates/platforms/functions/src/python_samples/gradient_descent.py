"""Linear regression by gradient descent with numpy."""
import numpy

FEATURES, ITERATIONS, STEP = 32, 30, 1.5


def main(parameters):
    samples = int(parameters.get("samples", 10000))
    data = numpy.random.default_rng(samples).uniform(-1, 1, (samples, FEATURES)).astype(numpy.float32)
    truth = numpy.arange(FEATURES, dtype=numpy.float32) / FEATURES - 0.5
    wanted = data @ truth
    weights = numpy.zeros(FEATURES, dtype=numpy.float32)
    for _ in range(ITERATIONS):
        weights -= STEP * data.T @ (data @ weights - wanted) / samples
    return {"samples": samples, "iterations": ITERATIONS, "largest_error": float(abs(weights - truth).max())}
