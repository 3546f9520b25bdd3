"""Makes thumbnails of a JPEG picture with pillow."""
import io
import time
import zlib

from PIL import Image


def photograph(width):
    height = max(width * 3 // 4, 1)
    across = Image.linear_gradient("L").resize((width, height))
    down = across.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    rings = Image.radial_gradient("L").resize((width, height))
    file = io.BytesIO()
    Image.merge("RGB", (across, down, rings)).save(file, "JPEG", quality=90)
    return file.getvalue()


def main(parameters):
    width = int(parameters.get("width", 2000))
    file = photograph(width)
    time.sleep(0.002 + len(file) * 5e-9)  # a store that sends 200 MB/s
    thumbnails = []
    for wanted in (1024, 512, 200):
        if wanted <= width:
            picture = Image.open(io.BytesIO(file))
            picture.thumbnail((wanted, wanted))
            small = io.BytesIO()
            picture.save(small, "PNG")
            size = len(small.getvalue())
            thumbnails.append({"width": picture.width, "bytes": size, "digest": zlib.crc32(picture.tobytes())})
    return {"width": width, "thumbnails": thumbnails}
