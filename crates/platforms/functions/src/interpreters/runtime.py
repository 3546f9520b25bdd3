# Python side of the /init and /run protocol: one file, no imports beyond _socket, json, sys and os at start.
#
# Each connection has a thread of its own, started without the module threading. The interpreter runs with -S: the first
# import that misses adds the path of installed packages.
import _socket
import json
import os
import sys

END = "XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX\n"
LARGEST_HEAD = 16 << 10
LARGEST_BODY = 72 << 20
# Packages whose module has another name.
PACKAGES = {"PIL": "pillow", "cv2": "opencv-python", "imageio_ffmpeg": "imageio-ffmpeg", "sklearn": "scikit-learn",
            "yaml": "pyyaml"}
function = None


class InstalledPackages:
    """Last in sys.meta_path: on the first module that is not found it adds the installed packages and looks again."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if cls not in sys.meta_path:
            return None
        sys.meta_path.remove(cls)
        import site
        site.main()
        import importlib.util
        return importlib.util.find_spec(name) if path is None else None


sys.meta_path.append(InstalledPackages)


def missing_package(why):
    name = (getattr(why, "name", None) or "?").partition(".")[0]
    return "the Python module %s is not installed: pip install %s" % (name, PACKAGES.get(name, name))


def explain(why):
    if isinstance(why, ModuleNotFoundError):
        return missing_package(why)
    return "%s: %s" % (type(why).__name__, why)


def init(request):
    global function
    if function is not None:
        return 403, {"error": "this instance has a function already; /init comes once"}
    value = request.get("value") or {}
    for key, text in (value.get("env") or {}).items():
        os.environ[key] = text if isinstance(text, str) else json.dumps(text)
    name = value.get("main") or "main"
    scope = {"__name__": "__main__", "__builtins__": __builtins__}
    try:
        if value.get("binary"):
            load_archive(value.get("code") or "", scope)
        else:
            exec(compile(value.get("code") or "", "function.py", "exec"), scope)
    except BaseException as why:
        report()
        return 502, {"error": "the code cannot be loaded: " + explain(why)}
    if not callable(scope.get(name)):
        return 502, {"error": "the code has no function `%s`; define it or set main" % name}
    function = scope[name]
    return 200, {"ok": True}


def load_archive(code, scope):
    import base64
    import io
    import tempfile
    import zipfile
    folder = tempfile.mkdtemp()
    zipfile.ZipFile(io.BytesIO(base64.b64decode(code))).extractall(folder)
    sys.path.insert(0, folder)
    path = os.path.join(folder, "__main__.py")
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), scope)


def run(request):
    if function is None:
        return 403, {"error": "/run came before a successful /init"}
    for key, text in request.items():
        if key != "value":
            os.environ["__OW_" + key.upper()] = text if isinstance(text, str) else json.dumps(text)
    try:
        result = function(request.get("value") or {})
        if not isinstance(result, (dict, list)):
            return 502, {"error": "the function returned %s, allowed is dict or list" % type(result).__name__}
        json.dumps(result)
        return (502 if "error" in result and isinstance(result, dict) else 200), result
    except BaseException as why:
        report()
        return 502, {"error": explain(why)}
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.write(END)
            stream.flush()


def report():
    import traceback
    traceback.print_exc()


def answer(line, body):
    words = line.split(" ")
    path = words[1].partition("?")[0] if len(words) > 1 else ""
    if path not in ("/init", "/run"):
        return 404, {"error": "this server has /init and /run"}
    if words[0] != "POST":
        return 405, {"error": "only POST is understood here"}
    try:
        request = json.loads(body) if body else {}
        if not isinstance(request, dict):
            raise ValueError("not a JSON object")
    except ValueError as why:
        return 400, {"error": "the body of %s: %s" % (path, why)}
    return init(request) if path == "/init" else run(request)


def length_of(headers):
    """Bytes of the body, or None if they cannot be known."""
    if "transfer-encoding" in headers:
        return None
    text = headers.get("content-length", "0")
    length = int(text) if text.isdigit() and len(text) < 10 else LARGEST_BODY + 1
    return length if length <= LARGEST_BODY else None


def serve(connection):
    received = b""
    while True:
        while b"\r\n\r\n" not in received:
            more = connection.recv(65536) if len(received) <= LARGEST_HEAD else b""
            if not more:
                return
            received += more
        head, _, received = received.partition(b"\r\n\r\n")
        line, *rest = head.decode("latin-1").split("\r\n")
        headers = {key.strip().lower(): value.strip() for key, _, value in (each.partition(":") for each in rest)}
        length = length_of(headers)
        if length is None:
            send(connection, 411, {"error": "a Content-Length of at most %d is needed" % LARGEST_BODY}, False)
            return
        if headers.get("expect", "").lower() == "100-continue" and len(received) < length:
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        pieces, have = [received], len(received)
        while have < length:
            more = connection.recv(65536)
            if not more:
                return
            pieces.append(more)
            have += len(more)
        received = b"".join(pieces)
        status, result = answer(line, received[:length])
        received = received[length:]
        keep = headers.get("connection", "").lower() != "close"
        send(connection, status, result, keep)
        if not keep:
            return


def send(connection, status, result, keep):
    body = json.dumps(result).encode()
    closing = "" if keep else "Connection: close\r\n"
    head = "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n"
    connection.sendall((head % (status, "OK" if status == 200 else "Error", closing, len(body))).encode() + body)


def converse(connection):
    try:
        connection.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        serve(connection)
    except OSError:
        pass  # the peer went away in the middle of a call
    finally:
        connection.close()


def listener():
    if os.environ.pop("LISTEN_FDS", None) == "1":
        inherited = _socket.socket(fileno=3)
        inherited.setblocking(True)
        return inherited
    own = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    own.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    own.bind(("127.0.0.1", int(os.environ.get("PORT", "8080"))))
    own.listen(128)
    return own


def main():
    import _thread
    accepting = listener()
    while True:
        descriptor, _ = accepting._accept()
        _thread.start_new_thread(converse, (_socket.socket(fileno=descriptor),))


main()
