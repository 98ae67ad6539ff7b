// Answers for testdata/respell: jackson.txt and gson.txt.
//
// Build with jackson-databind, jackson-core, jackson-annotations and gson on
// the class path, on Java 19 or newer, and run as "java -cp … Peers jackson".
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.gson.Gson;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

public class Peers {
    public static void main(String[] args) throws Exception {
        var mapper = new ObjectMapper();
        var gson = new Gson();
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = in.readLine()) != null; ) {
            byte[] body = Base64.getDecoder().decode(line);
            try {
                String out = args[0].equals("jackson")
                    ? mapper.writeValueAsString(mapper.readTree(body))
                    : gson.toJson(JsonParser.parseString(new String(body, StandardCharsets.UTF_8)));
                System.out.println(Base64.getEncoder().encodeToString(out.getBytes(StandardCharsets.UTF_8)));
            } catch (Exception e) {
                System.out.println("ERR");
            }
        }
    }
}
