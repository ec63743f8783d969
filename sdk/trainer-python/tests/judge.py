"""A language model that tests ask, and a reward that asks it."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from components import guest
from gavel_rl import Reward


class Judge:
    """A server that answers 1 to each question, as a language model. It holds back answers to "hang"."""

    def __init__(self) -> None:
        self.asked = self.at_once = self.most_at_once = 0
        self.times: list[float] = []
        self.released = threading.Event()
        lock = threading.Lock()
        judge = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                question = self.rfile.read(int(self.headers["content-length"]))
                with lock:
                    judge.asked += 1
                    judge.times.append(time.monotonic())
                    judge.at_once += 1
                    judge.most_at_once = max(judge.most_at_once, judge.at_once)
                if b"hang" in question:
                    judge.released.wait()
                time.sleep(0.01)
                with lock:
                    judge.at_once -= 1
                reply = {"role": "assistant", "content": "1"}
                answer = json.dumps({"choices": [{"index": 0, "message": reply, "finish_reason": "stop"}]}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.chat = {"base_url": f"http://127.0.0.1:{self._server.server_port}/v1", "model": "m"}

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


def asks() -> Reward:
    """A reward that asks the judge once for each row."""
    return Reward(guest("asks"), grant={"chat": ["judge"]})
