"""Writes personal e-mails and waits 4 ms for the mail server after every hundred."""
import quopri
import random
import time
import zlib
from string import Template

BODY = Template(
    "Dear $name, thank you for your order no. $number. $items parcels are on their way; the total is "
    "\u20ac$total = paid. Reply to this message if anything is missing: we read every answer."
)
NAMES = ["Ada", "Bj\u00f8rn", "Chlo\u00e9", "Dmitri", "Eva", "Fatima", "Grace", "Hana"]


def main(parameters):
    mails = int(parameters.get("mails", 1000))
    numbers = random.Random(1)
    digest = size = 0
    for mail in range(mails):
        number = numbers.randrange(1 << 32)
        total = "%.2f" % (number % 100000 / 100)
        body = BODY.substitute(name=NAMES[number % 8], number=number, items=number % 7 + 1, total=total)
        text = quopri.encodestring(body.encode())
        digest = zlib.crc32(text, digest)
        size += len(text)
        if mail % 100 == 99:
            time.sleep(0.004)
    return {"mails": mails, "bytes": size, "digest": digest}
