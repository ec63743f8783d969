"""A language model that gives every response the same score, for the scripts beside this file: a server of the
chat-completions protocol that answers each request after so many milliseconds.

    python host/pipeline/benches/chat_server.py MILLISECONDS      # prints its port
"""
import asyncio
import json
import sys

REPLY = {"choices": [{"index": 0, "finish_reason": "stop",
                      "message": {"role": "assistant", "content": json.dumps({"reason": "It answers.", "score": 5})}}],
         "usage": {"prompt_tokens": 100, "completion_tokens": 10}}
BODY = json.dumps(REPLY).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


class Connection(asyncio.Protocol):
    """Answers one request after the other: only where one ends matters."""

    def connection_made(self, transport):
        self.transport, self.read = transport, b""

    def data_received(self, data):
        self.read += data
        head, end, body = self.read.partition(b"\r\n\r\n")
        if not end:
            return
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                      if line.startswith(b"content-length:"))
        if len(body) < length:
            return
        self.read = body[length:]
        asyncio.get_running_loop().call_later(seconds, self.transport.write, ANSWER)


async def serve():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


seconds = float(sys.argv[1]) / 1000
asyncio.run(serve())
