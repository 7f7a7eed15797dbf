"""A scripted server of iTerm2's API, for tests of teamd with the real `it2`.

    python iterm2_server.py DIRECTORY

Listens on the socket of iTerm2 below HOME, and begins with the session FIRST. A session is a shell on a
pseudo-terminal. The server closes a session when its shell ends, as iTerm2 does by default. As long as the file
DIRECTORY/refuse exists, the server refuses each connection, as iTerm2 does if its Python API is off.

After each change, DIRECTORY/sessions.json says of each session: "name", "text" (its raw output), "beside" (the session
that was split), "vertical" (the direction of the divider), and "focused".
"""
import asyncio
import contextlib
import fcntl
import http
import json
import os
import re
import struct
import sys
import termios
import uuid

from iterm2 import api_pb2
from websockets.asyncio.server import unix_serve
from websockets.exceptions import ConnectionClosedError

DIRECTORY = sys.argv[1]
FIRST = "11111111-2222-4333-8444-555555555555"
COOKIE = "cookie-of-the-test"
ROWS, COLUMNS = 24, 100
# Escape sequences: of the operating system (titles, colors), of control, and single ones.
ESCAPES = re.compile(r"\x1b\][^\x07]*\x07|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]")
SESSIONS = {}


class TerminalSession:
    """A shell on a pseudo-terminal, and its output."""

    def __init__(self, identifier, beside=None, vertical=None):
        self.identifier, self.beside, self.vertical = identifier, beside, vertical
        self.name, self.text, self.focused = "", "", False
        self.pid, self.terminal = os.forkpty()
        if self.pid == 0:
            os.environ["ITERM_SESSION_ID"] = "w0t0p0:" + identifier
            os.execl("/bin/sh", "sh", "-i")
        # A later shell must not keep this terminal open.
        os.set_inheritable(self.terminal, False)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        asyncio.get_running_loop().add_reader(self.terminal, self.read)
        SESSIONS[identifier] = self

    def read(self):
        """Takes output of the shell. At its end, closes the session."""
        try:
            data = os.read(self.terminal, 65536)
        except OSError:
            data = b""
        self.text += data.decode(errors="replace")
        if not data:
            self.close()
        write_state()

    def close(self):
        """Hangs up the terminal, and removes the session."""
        if SESSIONS.pop(self.identifier, None):
            asyncio.get_running_loop().remove_reader(self.terminal)
            os.close(self.terminal)
            asyncio.get_running_loop().run_in_executor(None, os.waitpid, self.pid, 0)

    def lines(self):
        """The lines of the history and the screen."""
        return ESCAPES.sub("", self.text).replace("\r", "").split("\n")


def write_state():
    """Writes sessions.json."""
    keys = ("name", "text", "beside", "vertical", "focused")
    state = {session.identifier: {key: getattr(session, key) for key in keys} for session in SESSIONS.values()}
    path = os.path.join(DIRECTORY, "sessions.json")
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(state, file)
    os.rename(path + ".new", path)


def list_sessions(_request, response):
    window = response.windows.add(window_id="window", number=0)
    tab = window.tabs.add(tab_id="1")
    for session in SESSIONS.values():
        summary = tab.root.links.add().session
        summary.unique_identifier, summary.title = session.identifier, session.name
        summary.grid_size.width, summary.grid_size.height = COLUMNS, ROWS


def split_pane(request, response):
    identifier = str(uuid.uuid4()).upper()
    vertical = request.split_direction == api_pb2.SplitPaneRequest.VERTICAL
    TerminalSession(identifier, request.session, vertical)
    response.session_id.append(identifier)


def send_text(request, _response):
    os.write(SESSIONS[request.session].terminal, request.text.encode())


def get_buffer(request, response):
    lines = SESSIONS[request.session].lines()
    if request.line_range.screen_contents_only:
        lines = lines[-ROWS:]
    for line in lines:
        response.contents.add(text=line, continuation=1)


def get_property(request, response):
    count = len(SESSIONS[request.session_id].lines())
    numbers = {"grid": min(count, ROWS), "history": max(count - ROWS, 0), "overflow": 0, "first_visible": 0}
    response.json_value = json.dumps(numbers)


def close(request, response):
    for identifier in request.sessions.session_ids:
        SESSIONS[identifier].close()
        response.statuses.append(api_pb2.CloseResponse.OK)


def activate(request, _response):
    for session in SESSIONS.values():
        session.focused = session.identifier == request.session_id


def invoke_function(request, response):
    name = re.fullmatch(r'iterm2\.set_name\(name: "(.*)"\)', request.invocation)
    SESSIONS[request.method.receiver].name = name.group(1)
    response.success.json_result = "null"


def variable(request, response):
    response.values.extend("null" for _ in request.get)


def accept(_request, response):
    response.SetInParent()


HANDLERS = {
    "list_sessions": list_sessions, "split_pane": split_pane, "send_text": send_text, "get_buffer": get_buffer,
    "get_property": get_property, "close": close, "activate": activate, "invoke_function": invoke_function,
    "variable": variable, "notification": accept, "focus": accept, "get_broadcast_domains": accept,
}


async def serve(connection):
    """Answers the requests of one connection."""
    # `it2` ends without closing its connection.
    with contextlib.suppress(ConnectionClosedError):
        async for data in connection:
            await answer(connection, data)


async def answer(connection, data):
    """Answers one request."""
    message = api_pb2.ClientOriginatedMessage.FromString(data)
    kind = message.WhichOneof("submessage").removesuffix("_request")
    reply = api_pb2.ServerOriginatedMessage(id=message.id)
    response = getattr(reply, kind + "_response")
    response.SetInParent()
    HANDLERS[kind](getattr(message, kind + "_request"), response)
    write_state()
    await connection.send(reply.SerializeToString())


def check_cookie(connection, request):
    """Refuses a connection without the cookie, and each one while the file `refuse` exists."""
    is_refused = os.path.exists(os.path.join(DIRECTORY, "refuse"))
    if is_refused or request.headers.get("x-iterm2-cookie") != COOKIE:
        return connection.respond(http.HTTPStatus.UNAUTHORIZED, "refused\n")
    return None


async def main():
    path = os.path.expanduser("~/Library/Application Support/iTerm2/private/socket")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    async with unix_serve(serve, path, process_request=check_cookie, subprotocols=["api.iterm2.com"]):
        TerminalSession(FIRST)
        write_state()
        await asyncio.Future()


asyncio.run(main())
