# Finds a lobby, connects to it, draws the field, and runs after the pointer. Without a screen it runs after the star.
# The address of the platform and the public token of the namespace are in the environment: MUSTER_URL and MUSTER_TOKEN.
extends Node2D

var socket = WebSocketClient.new()
var own_id = 0
var state = { "star": { "x": 0.5, "y": 0.5 }, "players": [] }
var is_over = false


func _ready():
	$Muster.url = OS.get_environment("MUSTER_URL")
	$Muster.token = OS.get_environment("MUSTER_TOKEN")
	var seat = yield($Muster.find({ "game_modes": ["default"] }), "completed")
	if not seat.has("player"):
		return fail("%s: %s" % [seat.code, seat.message])
	print("Lobby " + seat.lobby.lobby_id)
	socket.connect("connection_established", self, "_on_open")
	socket.connect("connection_error", self, "fail", ["The lobby cannot be reached."])
	socket.connect("connection_closed", self, "_on_closed")
	socket.connect("data_received", self, "_on_data")
	if socket.connect_to_url($Muster.socket_url(seat, "game")) != OK:
		fail("The address of the lobby is not understood.")


func _process(_delta):
	socket.poll()
	update()


func _on_open(_protocol):
	socket.get_peer(1).set_write_mode(WebSocketPeer.WRITE_MODE_TEXT)


func _on_closed(_was_clean):
	fail("The lobby has closed the connection.")


func _on_data():
	var message = JSON.parse(socket.get_peer(1).get_packet().get_string_from_utf8()).result
	if message.has("id"):
		own_id = message.id
		return
	state = message
	var goal = goal()
	socket.get_peer(1).put_packet(("%.4f %.4f" % [goal.x, goal.y]).to_utf8())
	for player in state.players:
		if player.id == own_id and player.score > 0 and OS.has_feature("Server"):
			print("The first star is caught.")
			quit(0)


func goal():
	if OS.has_feature("Server"):
		return Vector2(state.star.x, state.star.y)
	var place = get_viewport().get_mouse_position() / get_viewport_rect().size
	return Vector2(clamp(place.x, 0, 1), clamp(place.y, 0, 1))


func _draw():
	var size = get_viewport_rect().size
	draw_rect(Rect2(Vector2.ZERO, size), Color("131a2b"))
	draw_circle(Vector2(state.star.x, state.star.y) * size, 10, Color("ffdf4d"))
	for player in state.players:
		draw_circle(Vector2(player.x, player.y) * size, 14, Color.from_hsv(player.hue / 360.0, 0.7, 0.95))


func fail(sentence):
	if is_over:
		return
	printerr(sentence)
	quit(1)


func quit(code):
	if is_over:
		return
	is_over = true
	set_process(false)
	socket.disconnect_from_host()
	get_tree().quit(code)
