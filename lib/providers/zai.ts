/** z.ai: GLM models, pay as you go or by the coding plan; open.bigmodel.cn speaks the same. */
import type { ProviderDescriptor } from "./provider.ts";
import { zaiHeaders, zaiPageHeaders, zaiProtocol, zaiUrl, zaiUsageUrl } from "./zai_request.ts";
import { readZaiSignal } from "./zai_signals.ts";
import { parseZaiUsage } from "./zai_usage.ts";

export const ZAI: ProviderDescriptor = {
  kind: "zai",
  logins: null,
  serves: (route) => route.base === "any",
  upstreamProtocol: zaiProtocol,
  alwaysStreams: () => false,
  url: zaiUrl,
  headers: zaiHeaders,
  pageHeaders: zaiPageHeaders,
  // Nothing that clients of its protocols send is refused.
  fitBody: (body) => body,
  readSignal: readZaiSignal,
  // Its answers carry no figures; the quota page does.
  readQuotaHeaders: () => null,
  usage: { url: zaiUsageUrl, parse: parseZaiUsage },
  answerHeaders: (headers) => headers,
  sharedLimitKey: () => null,
};
