# Finds a lobby of the arena, enters it, flies until it sees itself move, says what it saw, and leaves.
# The platform's address and the namespace's public token are in the environment: MUSTER_URL and MUSTER_TOKEN.
extends Node

const GAME_S_MAX = 90.0
const FLOWN_MIN = 20.0

var socket = WebSocketClient.new()
var lobby_id = null
var self_id = null
var start = null
var input_count = 0
# Set by the first result. The connection may report its end, or more data, until the game has quit.
var is_over = false


func _ready():
	get_tree().create_timer(GAME_S_MAX).connect("timeout", self, "fail", ["That took too long."])
	$Muster.url = OS.get_environment("MUSTER_URL")
	$Muster.token = OS.get_environment("MUSTER_TOKEN")
	var seat = yield($Muster.find({ "game_modes": ["default"] }), "completed")
	if not seat.has("player"):
		return fail("%s: %s" % [seat.code, seat.message])
	socket.connect("connection_established", self, "_on_open")
	socket.connect("connection_error", self, "fail", ["The lobby cannot be reached."])
	socket.connect("connection_closed", self, "_on_closed")
	socket.connect("data_received", self, "_on_data")
	if socket.connect_to_url($Muster.socket_url(seat, "game") + "&name=Godot") != OK:
		fail("The address of the lobby is not understood.")


func _process(_delta):
	socket.poll()


func _on_open(_protocol):
	socket.get_peer(1).set_write_mode(WebSocketPeer.WRITE_MODE_TEXT)


func _on_closed(_was_clean):
	fail("The lobby has closed the connection.")


func _on_data():
	if is_over:
		return
	var message = JSON.parse(socket.get_peer(1).get_packet().get_string_from_utf8()).result
	if message.type == "welcome":
		lobby_id = message.lobby_id
		self_id = message.self_id
	elif message.type == "snapshot":
		for player in message.players:
			if player.id == self_id:
				fly(Vector2(player.x, player.y), message.players.size())


func fly(place, player_count):
	if start == null:
		start = place
	if place.distance_to(start) >= FLOWN_MIN:
		print(JSON.print({ "lobby_id": lobby_id, "players": player_count }))
		return quit(0)
	input_count += 1
	# Towards the middle of the arena, where there is room.
	var direction = (Vector2(800, 450) - place).normalized()
	var input = { "type": "input", "seq": input_count, "x": direction.x, "y": direction.y, "dash": false }
	socket.get_peer(1).put_packet(JSON.print(input).to_utf8())


func fail(sentence):
	if is_over:
		return
	printerr(sentence)
	quit(1)


func quit(code):
	is_over = true
	set_process(false)
	socket.disconnect_from_host()
	get_tree().quit(code)
