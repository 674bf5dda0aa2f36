// A fleet manager for Nakama whose game servers are lobbies of Muster. Register it in InitModule:
//
//	initializer.RegisterFleetManager(NewMusterFleetManager(os.Getenv("MUSTER_URL"), ...))
//
// and call nk.GetFleetManager().Create(...) in the hook MatchmakerMatched. The user ids that Nakama gives to Create become the
// players of the allocation.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/heroiclabs/nakama-common/runtime"
)

// The platform responds after 50 s at the latest.
const responseTimeout = 60 * time.Second

// An allocation repeats its call with the same key at most this many times.
const attemptsMax = 3

type MusterFleetManager struct {
	url, cloudToken, namespaceID, gameMode string
	client                                 *http.Client
	callbacks                              runtime.FmCallbackHandler
}

func NewMusterFleetManager(url, cloudToken, namespaceID, gameMode string) *MusterFleetManager {
	client := &http.Client{Timeout: responseTimeout}
	return &MusterFleetManager{url: url, cloudToken: cloudToken, namespaceID: namespaceID, gameMode: gameMode, client: client}
}

type player struct {
	Address string `json:"address,omitempty"`
}

type allocation struct {
	Lobby struct {
		LobbyID string `json:"lobby_id"`
	} `json:"lobby"`
	Ports map[string]struct {
		Hostname string `json:"hostname"`
		Port     int    `json:"port"`
		URL      string `json:"url"`
	} `json:"ports"`
	Players []struct {
		PlayerID string `json:"player_id"`
		Token    string `json:"token"`
	} `json:"players"`
}

type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (m *MusterFleetManager) Init(nk runtime.NakamaModule, callbacks runtime.FmCallbackHandler) error {
	m.callbacks = callbacks
	return nil
}

// Create returns at once. The callback gets the instance and a session for each user, whose SessionID is the player token.
func (m *MusterFleetManager) Create(ctx context.Context, maxPlayers int, userIds []string, latencies []runtime.FleetUserLatencies, metadata map[string]any, callback runtime.FmCreateCallbackFn) error {
	key := make([]byte, 16)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	callbackID := m.callbacks.GenerateCallbackId()
	m.callbacks.SetCallback(callbackID, callback)
	go func() {
		instance, sessions, err := m.allocate(context.WithoutCancel(ctx), hex.EncodeToString(key), userIds, metadata)
		status := runtime.CreateSuccess
		if err != nil {
			status = runtime.CreateError
		}
		m.callbacks.InvokeCallback(callbackID, status, instance, sessions, metadata, err)
	}()
	return nil
}

func (m *MusterFleetManager) allocate(ctx context.Context, key string, userIds []string, metadata map[string]any) (*runtime.InstanceInfo, []*runtime.SessionInfo, error) {
	body, err := json.Marshal(map[string]any{
		"namespace_id": m.namespaceID,
		"game_mode":    m.gameMode,
		"players":      make([]player, len(userIds)),
		"lobby_config": map[string]any{"nakama_user_ids": userIds, "metadata": metadata},
	})
	if err != nil {
		return nil, nil, err
	}
	var found allocation
	for attempt := 1; ; attempt++ {
		again, err := m.post(ctx, key, body, &found)
		if err == nil {
			break
		}
		if !again || attempt == attemptsMax {
			return nil, nil, err
		}
		time.Sleep(time.Duration(attempt) * time.Second)
	}
	instance := &runtime.InstanceInfo{Id: found.Lobby.LobbyID, Status: "ready", CreateTime: time.Now(), PlayerCount: len(userIds), Metadata: metadata}
	if port, ok := found.Ports["game"]; ok {
		instance.ConnectionInfo = &runtime.ConnectionInfo{DnsName: port.Hostname, Port: port.Port}
	}
	sessions := make([]*runtime.SessionInfo, len(userIds))
	for index, userID := range userIds {
		sessions[index] = &runtime.SessionInfo{UserId: userID, SessionId: found.Players[index].Token}
	}
	return instance, sessions, nil
}

// The first result: whether the same call may be made again.
func (m *MusterFleetManager) post(ctx context.Context, key string, body []byte, found *allocation) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"/matchmaker/lobbies/allocate", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Authorization", "Bearer "+m.cloudToken)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	response, err := m.client.Do(request)
	if err != nil {
		return true, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return true, json.NewDecoder(response.Body).Decode(found)
	}
	var refused refusal
	_ = json.NewDecoder(response.Body).Decode(&refused)
	return response.StatusCode >= 502, fmt.Errorf("%s: %s", refused.Code, refused.Message)
}

// The rest of the interface is yours to add: the platform's API has lists of lobbies, and join by the id of a lobby.
var _ runtime.FleetManagerInitializer = (*MusterFleetManager)(nil)

func (m *MusterFleetManager) Get(ctx context.Context, id string) (*runtime.InstanceInfo, error) {
	return nil, errors.ErrUnsupported
}

func (m *MusterFleetManager) List(ctx context.Context, query string, limit int, previousCursor string) ([]*runtime.InstanceInfo, string, error) {
	return nil, "", errors.ErrUnsupported
}

func (m *MusterFleetManager) Join(ctx context.Context, id string, userIds []string, metadata map[string]string) (*runtime.JoinInfo, error) {
	return nil, errors.ErrUnsupported
}

func (m *MusterFleetManager) Update(ctx context.Context, id string, playerCount int, metadata map[string]any) error {
	return errors.ErrUnsupported
}

func (m *MusterFleetManager) Delete(ctx context.Context, id string) error {
	return errors.ErrUnsupported
}
