// Warehouse gateway: receives stock and order events (Standard Webhooks) with the
// JDK's own HTTP server and passes them to the warehouse system from a worker thread.
// javac -d target Main.java && java -cp target Main
//
// Field subject of the self test; ../EXPECTED.md says what is wrong with it.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.Base64;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Main {
    private static final int MAX_BODY = 64 * 1024;
    private static final long TOLERANCE_SECONDS = 300;

    private static byte[] key;
    private static final Set<String> received = ConcurrentHashMap.newKeySet();
    private static final ExecutorService worker = Executors.newSingleThreadExecutor();

    public static void main(String[] args) throws Exception {
        String secret = System.getenv("WEBHOOK_SECRET");
        if (secret == null || secret.isEmpty()) {
            System.err.println("WEBHOOK_SECRET is not set");
            System.exit(1);
        }
        key = Base64.getDecoder().decode(secret.startsWith("whsec_") ? secret.substring(6) : secret);

        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/webhooks", Main::handle);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
        System.out.println("listening on " + port);
    }

    private static void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            if (!"POST".equals(exchange.getRequestMethod())) {
                exchange.getResponseHeaders().set("Allow", "POST");
                exchange.sendResponseHeaders(405, -1);
                return;
            }
            String declared = exchange.getRequestHeaders().getFirst("Content-Length");
            if (declared != null && Long.parseLong(declared) > MAX_BODY) {
                exchange.sendResponseHeaders(413, -1);
                return;
            }
            byte[] body;
            try (InputStream in = exchange.getRequestBody()) {
                body = in.readNBytes(MAX_BODY + 1);
                if (body.length > MAX_BODY) {
                    exchange.sendResponseHeaders(413, -1);
                    return;
                }
            }

            String id = exchange.getRequestHeaders().getFirst("webhook-id");
            String timestamp = exchange.getRequestHeaders().getFirst("webhook-timestamp");
            String signature = exchange.getRequestHeaders().getFirst("webhook-signature");
            if (!isAuthentic(id, timestamp, signature, body)) {
                exchange.sendResponseHeaders(401, -1);
                return;
            }

            if (received.add(id)) {
                worker.submit(() -> process(id, body));
            }
            exchange.sendResponseHeaders(200, -1);
        }
    }

    private static boolean isAuthentic(String id, String timestamp, String signature, byte[] body) {
        if (id == null || timestamp == null || signature == null) {
            return false;
        }
        long sent;
        try {
            sent = Long.parseLong(timestamp);
        } catch (NumberFormatException e) {
            return false;
        }
        // Replay protection: nothing older than five minutes
        if (Instant.now().getEpochSecond() - sent > TOLERANCE_SECONDS) {
            return false;
        }

        byte[] expected = hmac(id + "." + timestamp + ".", body);
        for (String candidate : signature.split(" ")) {
            if (!candidate.startsWith("v1,")) {
                continue;
            }
            try {
                byte[] given = Base64.getDecoder().decode(candidate.substring(3));
                if (MessageDigest.isEqual(given, expected)) {
                    return true;
                }
            } catch (IllegalArgumentException e) {
                // not base64: try the next one
            }
        }
        return false;
    }

    private static byte[] hmac(String prefix, byte[] body) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            mac.update(prefix.getBytes(StandardCharsets.ISO_8859_1));
            return mac.doFinal(body);
        } catch (java.security.GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void process(String id, byte[] body) {
        System.out.println("event " + id + ": " + body.length + " bytes passed on");
    }
}
