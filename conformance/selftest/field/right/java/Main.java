// Event archive: receives events (Standard Webhooks) with the JDK's own HTTP server,
// keeps each in an inbox directory and appends it to the day's archive from a worker
// thread. Java 17, no dependencies; javac -d target Main.java && java -cp target Main
//
// Field subject of the self test: meant to be right.

import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Main {
    static final int MAX_BODY = 64 * 1024;
    static final int MAX_DISCARD = 1024 * 1024;

    public static void main(String[] args) throws Exception {
        List<byte[]> keys;
        try {
            keys = Verifier.keysFrom(System.getenv());
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage());
            System.exit(1);
            return;
        }

        // A client that dawdles over its request is cut off
        System.setProperty("sun.net.httpserver.maxReqTime", "20");
        System.setProperty("sun.net.httpserver.maxRspTime", "20");

        Inbox inbox = new Inbox(Path.of(System.getenv().getOrDefault("INBOX_DIR", "inbox")));
        Archive archive = new Archive(inbox);
        inbox.unfinished().forEach(archive::submit);

        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
        server.createContext("/", new Receiver(new Verifier(keys), inbox, archive)::handle);
        server.setExecutor(Executors.newFixedThreadPool(32));
        server.start();
    }

    // ---- receiving ---------------------------------------------------------------

    record Receiver(Verifier verifier, Inbox inbox, Archive archive) {
        void handle(HttpExchange exchange) throws IOException {
            try (exchange) {
                try {
                    route(exchange);
                } catch (RuntimeException e) {
                    e.printStackTrace();
                    answer(exchange, 500, "internal error");
                }
            }
        }

        private void route(HttpExchange exchange) throws IOException {
            String path = exchange.getRequestURI().getPath();
            if (!"/webhooks".equals(path) && !"/webhooks/".equals(path)) {
                answer(exchange, 404, "not found");
                return;
            }
            if (!"POST".equals(exchange.getRequestMethod())) {
                exchange.getResponseHeaders().set("Allow", "POST");
                answer(exchange, 405, "method not allowed");
                return;
            }

            byte[] body = readBody(exchange);
            if (body == null) {
                exchange.getResponseHeaders().set("Connection", "close");
                answer(exchange, 413, "payload too large");
                discard(exchange.getRequestBody());
                return;
            }

            Headers headers = exchange.getRequestHeaders();
            String id = only(headers.get("webhook-id"));
            String refusal = verifier.refusal(id, only(headers.get("webhook-timestamp")),
                    headers.get("webhook-signature"), body, Instant.now());
            if (refusal != null) {
                System.err.println("refused: " + refusal);
                answer(exchange, 401, "unauthorized");
                return;
            }

            boolean added;
            try {
                added = inbox.add(id, body);
            } catch (IOException e) {
                // Not stored, so not acknowledged: the sender shall try again
                e.printStackTrace();
                answer(exchange, 500, "not stored");
                return;
            }
            if (added) {
                archive.submit(Inbox.key(id));
            }
            answer(exchange, 200, added ? "received" : "already received");
        }

        /** The raw bytes up to the limit, or null: by Content-Length first, then by count. */
        private static byte[] readBody(HttpExchange exchange) throws IOException {
            String declared = exchange.getRequestHeaders().getFirst("Content-Length");
            if (declared != null) {
                try {
                    if (Long.parseLong(declared.trim()) > MAX_BODY) {
                        return null;
                    }
                } catch (NumberFormatException e) {
                    return null;
                }
            }
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            byte[] chunk = new byte[8192];
            InputStream in = exchange.getRequestBody();
            for (int n; (n = in.read(chunk)) >= 0; ) {
                if (body.size() + n > MAX_BODY) {
                    return null;
                }
                body.write(chunk, 0, n);
            }
            return body.toByteArray();
        }

        /** Throws a bounded rest away so that a client still sending reads the answer. */
        private static void discard(InputStream in) {
            byte[] chunk = new byte[8192];
            int total = 0;
            try {
                for (int n; total < MAX_DISCARD && (n = in.read(chunk)) >= 0; ) {
                    total += n;
                }
            } catch (IOException e) {
                // gone already
            }
        }

        private static String only(List<String> values) {
            return values != null && values.size() == 1 ? values.get(0) : null;
        }

        private static void answer(HttpExchange exchange, int status, String text) throws IOException {
            byte[] data = (text + "\n").getBytes(StandardCharsets.US_ASCII);
            exchange.getResponseHeaders().set("Content-Type", "text/plain");
            exchange.sendResponseHeaders(status, data.length);
            OutputStream out = exchange.getResponseBody();
            out.write(data);
            out.flush();
        }
    }

    // ---- verification ------------------------------------------------------------

    /** Standard Webhooks, symmetric scheme: HMAC-SHA256 over "id.timestamp.body". */
    record Verifier(List<byte[]> keys) {
        static final Duration TOLERANCE = Duration.ofMinutes(5);
        static final Pattern TIMESTAMP = Pattern.compile("[0-9]{1,12}");

        static List<byte[]> keysFrom(Map<String, String> env) {
            List<byte[]> keys = new ArrayList<>();
            for (String name : List.of("WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS")) {
                String value = env.getOrDefault(name, "");
                if (value.isEmpty()) {
                    if (keys.isEmpty()) {
                        throw new IllegalArgumentException(name + " is not set");
                    }
                    continue;
                }
                byte[] key;
                try {
                    key = Base64.getDecoder().decode(
                            value.startsWith("whsec_") ? value.substring("whsec_".length()) : value);
                } catch (IllegalArgumentException e) {
                    key = new byte[0];
                }
                if (key.length == 0) {
                    throw new IllegalArgumentException(name + " is not a webhook secret (whsec_ and base64)");
                }
                keys.add(key);
            }
            return keys;
        }

        /** Null when the delivery is authentic, otherwise the reason why it is not. */
        String refusal(String id, String timestamp, List<String> signatures, byte[] body, Instant now) {
            if (id == null || id.isEmpty() || timestamp == null || signatures == null) {
                return "missing headers";
            }
            if (!TIMESTAMP.matcher(timestamp).matches()) {
                return "bad timestamp";
            }
            if (Math.abs(now.getEpochSecond() - Long.parseLong(timestamp)) > TOLERANCE.toSeconds()) {
                return "stale timestamp";
            }
            for (byte[] key : keys) {
                byte[] expected = hmac(key, id + "." + timestamp + ".", body);
                for (String line : signatures) {
                    for (String entry : line.split(" ")) {
                        if (entry.startsWith("v1,")
                                && MessageDigest.isEqual(decode(entry.substring(3)), expected)) {
                            return null;
                        }
                    }
                }
            }
            return "bad signature";
        }

        private static byte[] decode(String text) {
            try {
                return Base64.getDecoder().decode(text);
            } catch (IllegalArgumentException e) {
                return new byte[0];
            }
        }

        private static byte[] hmac(byte[] key, String prefix, byte[] body) {
            try {
                Mac mac = Mac.getInstance("HmacSHA256");
                mac.init(new SecretKeySpec(key, "HmacSHA256"));
                // the server hands header bytes over as ISO 8859-1
                mac.update(prefix.getBytes(StandardCharsets.ISO_8859_1));
                return mac.doFinal(body);
            } catch (GeneralSecurityException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    // ---- inbox -------------------------------------------------------------------

    /**
     * One file for each event, named after the hash of its webhook-id and put in place by
     * a hard link: it is whole when it appears, and only the first of two copies succeeds.
     */
    static final class Inbox {
        private static final Duration KEEP = Duration.ofDays(7);
        private final Path dir;

        Inbox(Path dir) throws IOException {
            this.dir = dir;
            Files.createDirectories(dir);
        }

        static String key(String id) {
            try {
                byte[] hash = MessageDigest.getInstance("SHA-256")
                        .digest(id.getBytes(StandardCharsets.ISO_8859_1));
                return HexFormat.of().formatHex(hash);
            } catch (GeneralSecurityException e) {
                throw new IllegalStateException(e);
            }
        }

        boolean add(String id, byte[] body) throws IOException {
            Path target = dir.resolve(key(id) + ".event");
            if (Files.exists(target)) {
                return false;
            }
            Path temporary = Files.createTempFile(dir, "new", ".tmp");
            try {
                try (FileChannel file = FileChannel.open(temporary, StandardOpenOption.WRITE)) {
                    ByteBuffer data = ByteBuffer.wrap(body);
                    while (data.hasRemaining()) {
                        file.write(data);
                    }
                    file.force(true);
                }
                Files.createLink(target, temporary);
                return true;
            } catch (FileAlreadyExistsException e) {
                return false;
            } finally {
                Files.deleteIfExists(temporary);
            }
        }

        byte[] body(String key) throws IOException {
            return Files.readAllBytes(dir.resolve(key + ".event"));
        }

        void finished(String key) throws IOException {
            Files.writeString(dir.resolve(key + ".done"), Instant.now() + "\n");
        }

        Path archiveFile(LocalDate day) {
            return dir.resolve("archive-" + day + ".txt");
        }

        /** What an earlier run left undone; forgets what was done a week ago. */
        List<String> unfinished() throws IOException {
            List<String> keys = new ArrayList<>();
            try (Stream<Path> files = Files.list(dir)) {
                for (Path file : (Iterable<Path>) files::iterator) {
                    String name = file.getFileName().toString();
                    if (!name.endsWith(".event")) {
                        continue;
                    }
                    String key = name.substring(0, name.length() - ".event".length());
                    Path done = dir.resolve(key + ".done");
                    if (!Files.exists(done)) {
                        keys.add(key);
                    } else if (Files.getLastModifiedTime(done).toInstant()
                            .isBefore(Instant.now().minus(KEEP))) {
                        Files.deleteIfExists(file);
                        Files.deleteIfExists(done);
                    }
                }
            }
            return keys;
        }
    }

    // ---- background work ---------------------------------------------------------

    /** Takes events of every type and shape, in any order: the archive keeps bytes. */
    static final class Archive {
        private final Inbox inbox;
        private final ExecutorService worker = Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, "archive");
            thread.setDaemon(true);
            return thread;
        });

        Archive(Inbox inbox) {
            this.inbox = inbox;
        }

        void submit(String key) {
            worker.execute(() -> {
                try {
                    String line = key + " " + Base64.getEncoder().encodeToString(inbox.body(key)) + "\n";
                    Files.writeString(inbox.archiveFile(LocalDate.now(ZoneOffset.UTC)), line,
                            StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                    inbox.finished(key);
                } catch (IOException | RuntimeException e) {
                    // stays unfinished and is taken up again at the next start
                    System.err.println("event " + key + " not archived: " + e);
                }
            });
        }
    }
}
