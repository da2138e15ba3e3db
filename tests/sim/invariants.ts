/**
 * The invariants of state-machine-facts 6, and who looks after each: a check of this simulation, of the one of streams
 * where bytes are what counts, or another test.
 */
export interface Invariant {
  readonly id: string;
  readonly holds: string;
  /** `file#function` from `tests/sim`; empty when no simulation can show it. What needs bytes is in `recovery_sim`. */
  readonly checks: readonly string[];
  /** Where else, or why only in part. */
  readonly note?: string;
}

export const INVARIANTS: readonly Invariant[] = [
  {
    id: "P1",
    holds: "one probe a provider, one network probe, one lease an attempt",
    checks: [
      "checks/launch_checks.ts#requireLaunchAllowed",
      "checks/provider_agreement.ts#requireProviderAgreement",
    ],
  },
  {
    id: "P2",
    holds: "no launch during the pause; after it one until its lease settles",
    checks: [
      "checks/launch_checks.ts#requireLaunchAllowed",
      "checks/network_agreement.ts#requireNetworkAgreement",
    ],
  },
  { id: "P3", holds: "no launch on what is blocked", checks: ["checks/admission.ts#findObjection"] },
  {
    id: "P4",
    holds: "an account is a slot once a round; repair and recovery stay on it",
    checks: ["checks/launch_checks.ts#requireLaunchAllowed"],
  },
  {
    id: "P5",
    holds: "slots, rounds, repairs, recoveries and launches keep their bounds",
    checks: ["checks/launch_checks.ts#requireLaunchAllowed", "checks/wait_checks.ts#requireWaitAllowed"],
  },
  {
    id: "P6",
    holds: "nothing is launched when all is blocked",
    checks: ["checks/admission.ts#findObjection"],
  },
  {
    id: "P7",
    holds: "nothing is launched after the client's first byte",
    checks: ["checks/launch_checks.ts#requireLaunchAllowed"],
  },
  {
    id: "P8",
    holds: "the winner's bytes once, no loser's",
    checks: ["../recovery_sim/checks/delivery.ts#checkDelivery"],
  },
  {
    id: "P9",
    holds: "a stream that failed open is the upstream's bytes",
    checks: [
      "../recovery_sim/checks/delivery.ts#checkDelivery",
      "../recovery_sim/checks/bookings.ts#checkBookings",
    ],
  },
  {
    id: "P10",
    holds: "buffers and recovery slots are bounded and freed",
    checks: ["../recovery_sim/checks/slots.ts#checkSlots"],
  },
  {
    id: "P11",
    holds: "a cancelled request launches, blames and holds nothing",
    checks: [
      "referee/agreement.ts#Agreement",
      "checks/launch_checks.ts#requireLaunchAllowed",
      "../recovery_sim/checks/bookings.ts#checkBookings",
    ],
  },
  {
    id: "P12",
    holds: "no wait is longer than allowed, no stated minimum is cut short",
    checks: [
      "checks/wait_checks.ts#requireWaitAllowed",
      "checks/account_agreement.ts#requireAccountAgreement",
    ],
  },
  {
    id: "P13",
    holds: "what is sent once is sent once",
    checks: ["checks/launch_checks.ts#requireLaunchAllowed"],
  },
  {
    id: "P14",
    holds: "a request's own fault blames nobody and ends it",
    checks: ["referee/attempts.ts#takeEnd", "referee/agreement.ts#Agreement"],
  },
  {
    id: "P15",
    holds: "limits, credentials, credits and models are no strikes and no evidence",
    checks: ["checks/provider_agreement.ts#requireProviderAgreement"],
  },
  {
    id: "P16",
    holds: "only local failures of two providers open the pause, and no fresh success forbids it",
    checks: ["checks/network_agreement.ts#requireNetworkAgreement"],
  },
  {
    id: "P17",
    holds: "evidence counts for 60 s",
    checks: [
      "checks/network_agreement.ts#requireNetworkAgreement",
      "checks/disk_agreement.ts#requireDiskAgreement",
    ],
  },
  {
    id: "P18",
    holds: "a park ends half an hour after its observation and is not moved or armed again",
    checks: ["checks/account_agreement.ts#requireAccountAgreement"],
  },
  {
    id: "P19",
    holds: "no success ends a deadline, no page touches one",
    checks: ["checks/account_agreement.ts#requireAccountAgreement"],
  },
  {
    id: "P20",
    holds: "late, repeated and unknown ends change nothing",
    checks: ["referee/request_referee.ts#RequestReferee", "referee/agreement.ts#Agreement"],
  },
  {
    id: "P21",
    holds: "a dropped recovery attempt leaves no mark; a slot leaves one",
    checks: [
      "referee/attempts.ts#takeEnd",
      "referee/agreement.ts#Agreement",
      "../recovery_sim/checks/bookings.ts#checkBookings",
    ],
  },
  {
    id: "P22",
    holds: "records hold no token and no session",
    checks: ["referee/referee.ts#Referee"],
    note: "decision records only; logs and answers are tests of the shell",
  },
  {
    id: "P23",
    holds: "every deadline survives a crash unchanged",
    checks: ["referee/agreement.ts#Agreement", "checks/pool_event.ts#restarted"],
  },
  {
    id: "P24",
    holds: "what lives in memory is gone after a restart",
    checks: ["referee/agreement.ts#Agreement", "checks/pool_event.ts#restarted"],
  },
  {
    id: "P25",
    holds: "credential marks survive a restart with their material, and end with it",
    checks: ["checks/account_agreement.ts#requireAccountAgreement"],
  },
  {
    id: "P26",
    holds: "charges are known, unique and bounded, and pay for every launch but the first",
    checks: ["checks/ledger_checks.ts#requireSoundLedger", "referee/history.ts#History"],
  },
  {
    id: "P27",
    holds: "a crash refunds nothing and relaunches nothing",
    checks: ["referee/request_referee.ts#RequestReferee", "referee/history.ts#History"],
  },
  {
    id: "P28",
    holds: "nothing goes out before it is paid for",
    checks: ["checks/ledger_checks.ts#requirePaid"],
  },
  {
    id: "P29",
    holds: "after a restart no lease is out and every gate is where it was",
    checks: ["referee/agreement.ts#Agreement", "checks/pool_event.ts#restarted"],
  },
  { id: "P30", holds: "a poisoned row starts nothing", checks: ["drive/process.ts#Process"] },
  {
    id: "P31",
    holds: "memory and disk agree after each call",
    checks: ["checks/disk_agreement.ts#requireDiskAgreement"],
  },
  {
    id: "P32",
    holds: "the final answer does not depend on any order",
    checks: ["checks/final_answer.ts#requireFinalAnswer", "run_seed.ts#runSeed"],
  },
  { id: "P33", holds: "the same seed tells the same story", checks: ["run_seed.ts#runSeed"] },
  {
    id: "P34",
    holds: "Retry-After comes with 429 alone, and is true",
    checks: ["checks/final_answer.ts#requireFinalAnswer", "referee/request_referee.ts#RequestReferee"],
  },
  {
    id: "P35",
    holds: "every lease settles in time",
    checks: [
      "checks/launch_checks.ts#requireLaunchAllowed",
      "checks/provider_agreement.ts#requireProviderAgreement",
    ],
  },
  {
    id: "P36",
    holds: "whoever can be served is, at every step",
    checks: [
      "checks/wait_checks.ts#requireNobodyPassedOver",
      "checks/wait_checks.ts#requireNoRoundLeft",
      "drive/liveness.ts#requireEverybodyServed",
    ],
  },
  { id: "P37", holds: "an outage ends for everybody", checks: ["drive/liveness.ts#requireEverybodyServed"] },
  {
    id: "P38",
    holds: "whatever is blocked has a next moment, or an open circuit",
    checks: [
      "checks/provider_agreement.ts#requireProviderAgreement",
      "drive/liveness.ts#requireEverybodyServed",
    ],
  },
  {
    id: "P39",
    holds: "a session has one account, and leaves it only for cause",
    checks: [
      "checks/binding_checks.ts#requireBoundFirst",
      "checks/binding_checks.ts#requireBindingWritesAllowed",
    ],
  },
  {
    id: "P40",
    holds: "recovery off changes no byte",
    checks: ["../recovery_sim/checks/slots.ts#checkSlots", "../recovery_sim/run_scene.ts#runScene"],
  },
  {
    id: "P41",
    holds: "an override ends half an hour after the last success, and at a 429",
    checks: ["checks/account_agreement.ts#requireAccountAgreement"],
  },
  { id: "P42", holds: "a dead provider costs two launches a minute", checks: ["referee/history.ts#History"] },
  {
    id: "TABLE",
    holds: "every end is booked as the decision table says (sections 3 and 4)",
    checks: ["oracle/account_rules.ts#bookAccount", "oracle/booking.ts#bookOutcome"],
  },
  {
    id: "THROWS",
    holds: "no call of the pool throws anything but a failure of the store",
    checks: ["referee/referee.ts#Referee"],
  },
  { id: "LIVENESS", holds: "a run ends", checks: ["drive/simulation.ts#simulate"] },
];
