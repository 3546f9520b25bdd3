"""Renders a page with a table of random records with the template engine jinja2."""
import random
import zlib

from jinja2 import Environment

PAGE = Environment(autoescape=True).from_string(
    "<!doctype html><title>For {{ user }}</title><table>"
    "{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>{% endfor %}</table>"
)


def main(parameters):
    rows = int(parameters.get("rows", 1000))
    numbers = random.Random(rows)
    table = [[index] + ['%d <x> & "y"' % numbers.randrange(100000) for _ in range(8)] for index in range(rows)]
    page = PAGE.render(user=parameters.get("user", "<stranger>"), rows=table)
    return {"rows": rows, "bytes": len(page), "digest": zlib.crc32(page.encode())}
