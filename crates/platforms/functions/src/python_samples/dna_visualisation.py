"""Draws a DNA sequence as a line with the package squiggle."""
import random
import time

from squiggle import transform


def main(parameters):
    bases = int(parameters.get("kilobases", 100)) * 1000
    sequence = "".join(random.Random(bases).choices("TCAG", k=bases))
    time.sleep(0.002 + bases / 4 * 5e-9)  # a store that sends 200 MB/s
    x, y = transform(sequence, method="squiggle")
    return {"bases": bases, "points": len(x), "highest": float(max(y)), "lowest": float(min(y))}
