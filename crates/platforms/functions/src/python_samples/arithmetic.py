"""Integer arithmetic in a loop, split among processes: threads of one interpreter would take turns."""
from multiprocessing import Pipe, Process

A, C, MODULUS = 6364136223846793005, 1442695040888963407, 1 << 64


def million(start, steps):
    x = start
    for _ in range(steps):
        x = (x * A + C) % MODULUS
    return x


def part(millions, connection):
    digest = 0
    for number in millions:
        digest ^= million(number, 1_000_000)
    connection.send(digest)


def main(parameters):
    size = int(parameters.get("million_steps", 2))
    processes = int(parameters.get("threads", 2))
    started = []
    for number in range(processes):
        here, there = Pipe(False)
        process = Process(target=part, args=(range(number, size, processes), there))
        process.start()
        started.append((process, here))
    digest = 0
    for process, connection in started:
        digest ^= connection.recv()
        process.join()
    return {"steps": size * 1_000_000, "digest": "%016x" % digest}
