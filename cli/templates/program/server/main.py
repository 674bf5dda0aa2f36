"""The server of one lobby, in Python without packages. Any program can do the same: three calls of the platform by HTTP.

The page reads the state as server-sent events (GET /events), and sends where its pointer is (POST /steer)."""
import json
import math
import os
import random
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

STEP_S = 0.05
SPEED_PER_S = 0.45
CATCH_DISTANCE = 0.045
BODY_BYTES_MAX = 64
CALL_S_MAX = 10
TRIES_MAX = 60
HUES = [190, 330, 50, 120, 270, 20, 215, 90]

lock = threading.Condition()
players = {}  # by the player's token
star = {"x": 0.5, "y": 0.5}


def call_platform(path, body):
    """Repeats while the platform is not reached. A refusal is final: urllib.error.HTTPError with a status of 4xx."""
    url = os.environ["PLATFORM_API_URL"] + path
    headers = {"Authorization": "Bearer " + os.environ["PLATFORM_TOKEN"], "Content-Type": "application/json"}
    for count in range(TRIES_MAX):
        try:
            request = urllib.request.Request(url, json.dumps(body).encode(), headers)
            return urllib.request.urlopen(request, timeout=CALL_S_MAX).read()
        except OSError as error:
            is_final = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if is_final or count == TRIES_MAX - 1:
                raise
        time.sleep(1)


def somewhere():
    return {"x": random.uniform(0.1, 0.9), "y": random.uniform(0.1, 0.9)}


def play():
    """Moves everybody, and wakes the threads that send the state."""
    global star
    while True:
        time.sleep(STEP_S)
        with lock:
            for player in players.values():
                dx, dy = player["target"][0] - player["x"], player["target"][1] - player["y"]
                distance = math.hypot(dx, dy)
                part = min(1, SPEED_PER_S * STEP_S / distance) if distance > 0 else 0
                player["x"] += dx * part
                player["y"] += dy * part
                if math.hypot(player["x"] - star["x"], player["y"] - star["y"]) <= CATCH_DISTANCE:
                    player["score"] += 1
                    star = somewhere()
            lock.notify_all()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        url = urlsplit(self.path)
        if url.path != "/events":
            return self.send_error(404)
        token = parse_qs(url.query).get("token", [""])[0]
        try:
            call_platform("/matchmaker/players/connected", {"player_token": token})
        except urllib.error.HTTPError:
            return self.send_error(401)
        try:
            self.send_state(token)
        except OSError:
            pass  # The page was closed.
        finally:
            with lock:
                player = players.pop(token, None)
                if player is not None:
                    print(f"player {player['id']} left, {len(players)} here", flush=True)
            call_platform("/matchmaker/players/disconnected", {"player_token": token})

    def send_state(self, token):
        place = somewhere()
        with lock:
            id = max((player["id"] for player in players.values()), default=0) + 1
            players[token] = {"id": id, **place, "target": (place["x"], place["y"]), "hue": HUES[id % len(HUES)], "score": 0}
            print(f"player {id} joined, {len(players)} here", flush=True)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        message = {"id": id}
        while True:
            self.wfile.write(f"data: {json.dumps(message)}\n\n".encode())
            with lock:
                lock.wait()
                shown = [{k: v for k, v in player.items() if k != "target"} for player in players.values()]
                message = {"star": star, "players": shown}

    def do_POST(self):
        """What strangers send is checked: a token of a player who is here, and a place of the field."""
        url = urlsplit(self.path)
        token = parse_qs(url.query).get("token", [""])[0]
        length = int(self.headers.get("Content-Length", 0))
        if url.path != "/steer" or token not in players or length > BODY_BYTES_MAX:
            return self.send_error(404)
        try:
            x, y = map(float, self.rfile.read(length).split())
        except ValueError:
            return self.send_error(400)
        with lock:
            if token in players and 0 <= x <= 1 and 0 <= y <= 1:
                players[token]["target"] = (x, y)
        self.send_response(204)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()

    def log_message(self, *_args):
        pass  # One line for each move would fill the log of the lobby.


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT_GAME", "7777"))), Handler)
server.daemon_threads = True
threading.Thread(target=play, daemon=True).start()
threading.Thread(target=server.serve_forever, daemon=True).start()
call_platform("/matchmaker/lobbies/ready", {})  # The first players wait for this.
threading.Event().wait()
