"""Encodes a test film with FFmpeg; the package imageio-ffmpeg brings the program along."""
import os
import subprocess
import tempfile

import imageio_ffmpeg


def main(parameters):
    frames = int(parameters.get("frames", 75))
    with tempfile.TemporaryDirectory() as folder:
        film = os.path.join(folder, "film.mp4")
        source = "testsrc=size=320x184:rate=30"
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", "-threads", "1", "-f", "lavfi", "-i", source]
        subprocess.run(command + ["-frames:v", str(frames), "-threads", "1", film], check=True)
        return {"frames": frames, "bytes": os.path.getsize(film)}
