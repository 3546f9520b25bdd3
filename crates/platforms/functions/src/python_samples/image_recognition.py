"""Classifies pictures with a ResNet-50; onnx brings its structure with constant weights along as a test model."""
import os

import numpy
import onnx
import onnxruntime

MODEL = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light", "light_resnet50.onnx")
session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
source = session.get_inputs()[0]


def main(parameters):
    pictures = int(parameters.get("pictures", 1))
    classes = []
    for number in range(pictures):
        picture = numpy.random.default_rng(number).uniform(-1, 1, (1, 3, 224, 224)).astype(numpy.float32)
        scores = session.run(None, {source.name: picture})[0]
        classes.append(int(scores.argmax()))
    return {"pictures": pictures, "first_classes": classes[:10]}
