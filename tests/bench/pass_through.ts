/**
 * What the runtime itself costs: the shortest proxy Deno can be, `Deno.serve` to `fetch`. Holdfast is measured against it.
 */
const [port, upstream] = [Number(Deno.args[0]), Deno.args[1]!];

Deno.serve({ hostname: "127.0.0.1", port, onListen: () => {} }, async (request) => {
  const { pathname } = new URL(request.url);
  const response = await fetch(upstream + pathname, {
    method: request.method,
    headers: request.headers,
    body: request.body,
  });
  return new Response(response.body, { status: response.status, headers: response.headers });
});
