/** The two path helpers the test tools need, without a package. */
export function fromFileUrl(url: URL): string {
  return decodeURIComponent(url.pathname);
}

export function join(...parts: string[]): string {
  return parts.join("/").replaceAll(/\/+/g, "/");
}
