"""Classifies 100 points by their 5 nearest neighbours with numpy."""
import numpy

CLASSES, QUERIES, COORDINATES, NEIGHBOURS = 10, 100, 32, 5


def main(parameters):
    count = int(parameters.get("points", 10000))
    generator = numpy.random.default_rng(7)
    classes = numpy.arange(count) % CLASSES
    known = classes[:, None] + generator.uniform(-0.45, 0.45, (count, COORDINATES))
    queries = numpy.arange(QUERIES)[:, None] % CLASSES + generator.uniform(-0.45, 0.45, (QUERIES, COORDINATES))
    right = 0
    for number, query in enumerate(queries):
        distances = ((known - query) ** 2).sum(axis=1)
        nearest = numpy.argpartition(distances, min(NEIGHBOURS, count) - 1)[:NEIGHBOURS]
        right += int(numpy.bincount(classes[nearest]).argmax() == number % CLASSES)
    return {"points": count, "queries": QUERIES, "right": right}
