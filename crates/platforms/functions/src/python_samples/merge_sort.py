"""Merge sort of numbers, split among processes."""
import random
from heapq import merge
from multiprocessing import Pipe, Process


def merge_sort(numbers):
    if len(numbers) < 2:
        return numbers
    middle = len(numbers) // 2
    left, right = merge_sort(numbers[:middle]), merge_sort(numbers[middle:])
    merged, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


def part(numbers, connection):
    connection.send(merge_sort(numbers))


def main(parameters):
    count = int(parameters.get("thousand_numbers", 50)) * 1000
    processes = int(parameters.get("threads", 2))
    generator = random.Random(count)
    numbers = [generator.getrandbits(64) for _ in range(count)]
    started = []
    for number in range(processes):
        here, there = Pipe(False)
        process = Process(target=part, args=(numbers[number::processes], there))
        process.start()
        started.append((process, here))
    parts = [connection.recv() for _, connection in started]
    for process, _ in started:
        process.join()
    ordered = list(merge(*parts))
    return {
        "numbers": count,
        "sorted": all(a <= b for a, b in zip(ordered, ordered[1:])),
        "smallest": ordered[0],
        "median": ordered[count // 2],
        "largest": ordered[-1],
    }
