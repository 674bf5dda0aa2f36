# Asks the platform for a seat in a lobby. Copy it into your game, as a node beside those that need it.
extends Node

const TRIES_MAX = 10
# A find waits for a server that is starting.
const ANSWER_S_MAX = 60.0
const PAUSE_S = 0.5

# Where the platform is, and the public token of your game's namespace. Both may be seen by everybody.
var url = ""
var token = ""


# The seat: `lobby`, `ports` and `player`. If there is none, the refusal: a dictionary with `code` and `message`.
# var seat = yield(muster.find({ "game_modes": ["default"] }), "completed")
func find(wish):
	var headers = PoolStringArray([
		"Authorization: Bearer " + token,
		"Content-Type: application/json",
		# The same for all tries: if an answer gets lost, the next try gets the same seat, not a second.
		"Idempotency-Key: " + Crypto.new().generate_random_bytes(16).hex_encode(),
	])
	var request = HTTPRequest.new()
	request.timeout = ANSWER_S_MAX
	add_child(request)
	var answer = { "code": "CONNECTION_FAILED", "message": "The platform cannot be reached." }
	for count in TRIES_MAX:
		if count > 0:
			yield(get_tree().create_timer(PAUSE_S * count), "timeout")
		if request.request(url + "/matchmaker/lobbies/find", headers, true, HTTPClient.METHOD_POST, JSON.print(wish)) != OK:
			continue
		# What it came to, the status, the headers, the body.
		var completed = yield(request, "request_completed")
		if completed[0] != HTTPRequest.RESULT_SUCCESS:
			continue
		var body = JSON.parse(completed[3].get_string_from_utf8()).result
		if body is Dictionary:
			answer = body
		# 502, 503 and 504 say "not now"; everything else is final.
		if not completed[1] in [502, 503, 504]:
			break
	request.queue_free()
	return answer


# The WebSocket address of a port of the seat, with the player's token for the lobby's server.
func socket_url(seat, port_name):
	var base = seat.ports[port_name].url.trim_prefix("http").rstrip("/")
	return "ws" + base + "/?token=" + seat.player.token.http_escape()
