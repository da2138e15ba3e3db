/** The version of the program, as `--version` and `GET /` say it. */
export const VERSION = "0.1.0";
