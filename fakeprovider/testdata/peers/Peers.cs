// Answers for testdata/respell: dotnet.txt (System.Text.Json), and with the
// symbol NEWTONSOFT newtonsoft.txt (Json.NET). Run it with TZ=UTC.
using System;
using System.IO;
using System.Text;
#if !NEWTONSOFT
using System.Text.Json;
#endif

public class Peers
{
    public static void Main()
    {
        string line;
        while ((line = Console.In.ReadLine()) != null)
        {
            byte[] body = Convert.FromBase64String(line);
            try { Console.Out.WriteLine(Convert.ToBase64String(Respell(body))); }
            catch (Exception) { Console.Out.WriteLine("ERR"); }
        }
    }

#if NEWTONSOFT
    static byte[] Respell(byte[] body)
    {
        var token = Newtonsoft.Json.JsonConvert.DeserializeObject<Newtonsoft.Json.Linq.JToken>(Encoding.UTF8.GetString(body));
        return Encoding.UTF8.GetBytes(token.ToString(Newtonsoft.Json.Formatting.None));
    }
#else
    static byte[] Respell(byte[] body)
    {
        using (var document = JsonDocument.Parse(new ReadOnlyMemory<byte>(body), default(JsonDocumentOptions)))
        {
            var stream = new MemoryStream();
            using (var writer = new Utf8JsonWriter(stream, default(JsonWriterOptions)))
            {
                document.RootElement.WriteTo(writer);
            }
            return stream.ToArray();
        }
    }
#endif
}
