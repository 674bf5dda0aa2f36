// A Cloud Code module that allocates a lobby of Muster for a match of Unity's matchmaker. A client of the match, or the hosting
// provider's webhook, calls the endpoint once for each match. All calls for a match get the same lobby.
using System.Net.Http.Headers;
using System.Net.Http.Json;
using System.Text.Json.Serialization;
using Unity.Services.CloudCode.Core;

namespace MusterExample;

public record MatchedPlayer(
    [property: JsonPropertyName("address")] string? Address,
    [property: JsonPropertyName("identity_id")] string? IdentityId);

public record SeatedPlayer(
    [property: JsonPropertyName("player_id")] string PlayerId,
    [property: JsonPropertyName("token")] string Token);

public record LobbyPort(
    [property: JsonPropertyName("hostname")] string Hostname,
    [property: JsonPropertyName("port")] int? Port,
    [property: JsonPropertyName("url")] string Url);

public record AllocatedLobby([property: JsonPropertyName("lobby_id")] string LobbyId);

public record Allocation(
    [property: JsonPropertyName("lobby")] AllocatedLobby Lobby,
    [property: JsonPropertyName("ports")] Dictionary<string, LobbyPort> Ports,
    [property: JsonPropertyName("players")] List<SeatedPlayer> Players);

public record Refusal(
    [property: JsonPropertyName("code")] string Code,
    [property: JsonPropertyName("message")] string Message);

public class MusterAllocator
{
    private const int AttemptsMax = 3;

    // The platform responds after 50 s at the latest.
    private static readonly HttpClient Client = new() { Timeout = TimeSpan.FromSeconds(60) };

    // `matchId`: of the matchmaker. `players`: in the order in which the tokens come back, without Unity's own ids.
    [CloudCodeFunction("AllocateMatch")]
    public async Task<Allocation> AllocateMatch(
        IExecutionContext context, string matchId, string gameMode, List<MatchedPlayer> players)
    {
        for (var attempt = 1; ; attempt++)
        {
            using var request = new HttpRequestMessage(HttpMethod.Post, $"{Setting("MUSTER_URL")}/matchmaker/lobbies/allocate");
            request.Headers.Authorization = new AuthenticationHeaderValue("Bearer", Setting("MUSTER_CLOUD_TOKEN"));
            request.Headers.Add("Idempotency-Key", matchId);
            request.Content = JsonContent.Create(new
            {
                namespace_id = Setting("MUSTER_NAMESPACE"),
                game_mode = gameMode,
                players,
            });
            using var response = await Client.SendAsync(request);
            if (response.IsSuccessStatusCode) return (await response.Content.ReadFromJsonAsync<Allocation>())!;
            var refusal = await response.Content.ReadFromJsonAsync<Refusal>();
            var mayRepeat = (int)response.StatusCode >= 502;
            if (!mayRepeat || attempt == AttemptsMax) throw new Exception($"{refusal?.Code}: {refusal?.Message}");
            await Task.Delay(TimeSpan.FromSeconds(attempt));
        }
    }

    // Replace it by Unity's Secret Manager: a cloud token does not belong into the source.
    private static string Setting(string name) =>
        Environment.GetEnvironmentVariable(name) ?? throw new Exception($"{name} is not set.");
}
