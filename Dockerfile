# One JavaScript file on the runtime alone: no shell, no package manager, not root.
FROM denoland/deno:2.9.6 AS build
WORKDIR /src
COPY . .
RUN deno install --frozen && deno task bundle

FROM denoland/deno:distroless-2.9.6
COPY --from=build /src/dist/holdfast.js /app/holdfast.js
USER 65532:65532
# Accounts and state are mounted: /accounts (read-write, for rotated tokens) and /state (the database).
ENV XDG_STATE_HOME=/state HOME=/home/nonroot DENO_NO_UPDATE_CHECK=1
VOLUME ["/accounts", "/state"]
EXPOSE 8317
HEALTHCHECK NONE
ENTRYPOINT ["deno", "run", "--v8-flags=--max-semi-space-size=12", "--allow-net", "--allow-read", "--allow-write", "--allow-env", "--allow-sys", "--no-remote", "--no-npm", "--no-config", "/app/holdfast.js"]
CMD ["serve", "--config", "/accounts/holdfast.yaml"]
