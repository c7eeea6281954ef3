"""The acceptance list: every row by its number, in short; tests cite the numbers.

`now` marks the rows that the program must show today; the others come with the part of the
cluster that they are about. `instead` says what holds where a row describes the inside of a JVM.
"""

from typing import NamedTuple


class Row(NamedTuple):
    """One behaviour that is accepted when a test that cites it passes."""

    id: str
    title: str
    now: bool = True
    instead: str = ""


class Section(NamedTuple):
    """Rows about one subject."""

    title: str
    rows: tuple[Row, ...]


LATER = False

SECTIONS = (
    Section(
        "Constants and words",
        (
            Row("K1", "Reserved leaders and epochs: none, being deleted; where each epoch begins"),
            Row("K2", "Seven replica states with their numbers"),
            Row("K3", "Four partition states with their numbers"),
            Row("K4", "From which states each replica state may be entered"),
            Row("K5", "From which states each partition state may be entered"),
            Row("K6", "A replica id is a broker id; negative ids get no request"),
            Row("K7", "The fields of a partition state in LeaderAndIsr, per version"),
            Row(
                "K8",
                "Who owns logs, segments, partitions and replicas",
                instead="broker.replicas owns partitions, a partition its log, a log its segments",
            ),
        ),
    ),
    Section(
        "Replicas, as the controller sees them",
        (
            Row(
                "R1",
                "Only the elected controller runs the machines; the live brokers are told first",
                instead="machines are made with a controllership and dropped with it",
            ),
            Row("R2", "Replicas are handled broker by broker, then everything is sent at once"),
            Row("R3", "A lost controllership ends the work; any other failure stays where it was"),
            Row("R4", "A change that was written and not sent is never forgotten"),
            Row("R5", "A replica without a state begins as non-existent"),
            Row("R6", "Forbidden crossings are refused one by one; the others proceed"),
            Row("R7", "The leader of a partition cannot become a new replica"),
            Row("R8", "A new replica of a led partition is told to its broker as new"),
            Row("R9", "A new replica of an unled partition is only remembered"),
            Row("R10", "New to online: no request; a missing replica joins the assignment"),
            Row("R11", "Back online: the broker is told, when there is leadership to tell"),
            Row("R12", "Going offline: first the broker is asked to stop, nothing is deleted"),
            Row("R13", "Going offline: out of the ISR, and the other replicas are told"),
            Row("R14", "Going offline without leadership: only the metadata is updated"),
            Row("R15", "Leaving the ISR: leader none, epoch up, the sole member stays"),
            Row("R16", "State that a later controller wrote is not overwritten"),
            Row("R17", "Deletion begins: the broker is asked to delete"),
            Row("R18", "Deletion succeeds or becomes ineligible: only remembered"),
            Row("R19", "A deleted replica leaves the assignment and has no state"),
            Row("R20", "Deleting a replica asks its broker twice: stop, then delete"),
            Row("R21", "Where the controller runs does not decide how a partition ends", LATER),
            Row("R22", "At start a replica is online where its broker lives, else ineligible"),
            Row("R23", "Every crossing leaves a trace, and so do control requests on a broker"),
        ),
    ),
    Section(
        "Partitions and elections",
        (
            Row("P1", "A new partition is only remembered"),
            Row("P2", "The first leader is the first live replica; the live ones are the ISR"),
            Row("P3", "A partition without a live replica stays new"),
            Row("P4", "Its nodes are written level by level, each guarded by the controller epoch"),
            Row("P5", "Those in the ISR are told as new, all brokers get the metadata"),
            Row("P6", "The order of crossings when partitions are created"),
            Row("P7", "One request for each broker, whatever the number of partitions"),
            Row("P8", "Four strategies of election and what each leaves in the ISR", LATER),
            Row("P9", "One broker, three partitions, one request: the worked example", LATER),
        ),
    ),
    Section(
        "The controller's requests",
        (
            Row(
                "Q1",
                "Three buffers: leadership, metadata, stops",
                instead="core.controller.request_batch collects the same three per broker",
            ),
            Row("Q2", "Whoever hears of leadership: everyone gets the metadata too"),
            Row("Q3", "New and delete, once asked for, are not lost when requests merge"),
            Row("Q4", "The live leaders in a request are those of its partitions"),
            Row(
                "Q5",
                "One queue and one request in flight per broker, in a fixed order",
                instead="broker.controller_channels keeps what has not left, per broker",
            ),
            Row("Q6", "The controller alone opens these channels, to itself as well"),
            Row("Q7", "Answers come back as events; a stale epoch in one is no failure"),
            Row("Q8", "Answers to a deleting stop are told to the deletion of the topic"),
            Row("Q9", "A request is repeated until it is answered or its broker is gone"),
            Row(
                "Q10",
                "What a dead broker was to get is dropped; no batch begins on a full one",
                instead="a batch is a value of its own, so none can be left half full",
            ),
            Row("Q11", "LeaderAndIsr version 1, by the worked example"),
        ),
    ),
    Section(
        "LeaderAndIsr on a broker",
        (
            Row("L1", "Only a broker may send it", LATER),
            Row("L2", "A stale broker epoch is refused; -1 and larger ones pass"),
            Row(
                "L3",
                "One control request at a time",
                instead="the loop handles one request after the other; nothing comes between",
            ),
            Row("L4", "A stale controller epoch is refused, a newer one is remembered"),
            Row("L5", "A partition on a lost directory answers with a storage error"),
            Row("L6", "Another topic's id is refused; no id is taken as agreement"),
            Row("L7", "A newer leader epoch makes a leader, a follower, or an error"),
            Row("L8", "An older leader epoch is stale"),
            Row("L9", "An equal leader epoch may only bring or take the topic id"),
            Row("L10", "Leaders first, then followers, then what hangs on them"),
            Row(
                "L11",
                "A partition that could not be created is offline",
                instead="Kafka 3.9 has L5 and L13 in its place",
            ),
            Row(
                "L12",
                "Becoming a leader stops fetching first",
                instead="a partition's fetcher is removed before its role changes",
            ),
            Row("L13", "A disk error in a role change takes the partition offline"),
            Row("L14", "The same leader epoch again changes nothing but the partition epoch"),
            Row("L15", "What a new leader sets up: log, epoch cache, followers, high watermark"),
            Row("L16", "A topic's settings that cannot be read refuse the role"),
            Row(
                "L17",
                "A changed assignment adds and removes replicas",
                instead="assignment and ISR of a partition are replaced as one value",
            ),
            Row("L18", "A follower of a dead or unknown leader still has its log"),
            Row("L19", "Fetching begins anew with every leader epoch", LATER),
            Row("L20", "What a new follower does, in order"),
            Row("L21", "Where a follower begins to fetch", LATER),
            Row("L22", "The leader epoch checkpoint: one line per epoch and start"),
            Row("L23", "High watermarks are kept in replication-offset-checkpoint"),
            Row("L24", "Replicas that move between directories", LATER),
            Row("L25", "Coordinators follow the leadership of their partitions"),
            Row("L26", "Answers name topics before version 5 and ids from it on"),
            Row("L27", "Whose answer a client gets on a partition that is not led here"),
        ),
    ),
    Section(
        "StopReplica on a broker",
        (
            Row("S1", "Only a broker may send it, with a broker epoch that is not stale", LATER),
            Row("S2", "A stale controller epoch is refused, a newer one is remembered"),
            Row("S3", "A partition on a lost directory answers with a storage error", LATER),
            Row("S4", "Older leader epochs are fenced; equal, deleting and none pass", LATER),
            Row("S5", "What is not hosted is stopped, and its leftovers are deleted"),
            Row("S6", "Fetchers first, then the partitions, parked requests, the logs"),
            Row("S7", "Stopping keeps the log; deleting sets it aside and removes it later"),
            Row("S8", "Errors are per partition"),
            Row("S9", "Coordinators of a deleted partition resign"),
            Row("S10", "Idle fetchers end", LATER),
            Row("S11", "What makes a controller send it", LATER),
        ),
    ),
    Section(
        "Creating topics",
        (
            Row("C1", "By a request or by use; with counts or with an assignment"),
            Row("C2", "Limits of partitions and of the replication factor"),
            Row("C3", "Only the controller creates for a client"),
            Row("C4", "Three things must agree before a topic is created by use"),
            Row("C5", "What an unasked-for topic gets"),
            Row("C6", "Unknown and invalid topics in metadata, per version"),
            Row("C7", "Names: characters, length, dots and underscores"),
            Row("C8", "Creation by use is written by the broker that was asked"),
            Row("C9", "While a topic comes into being its leader is not available"),
            Row("C10", "Each refusal has its own code; duplicates are refused both"),
            Row("C11", "Assignments: equal factors, no duplicates, consecutive partitions"),
            Row("C12", "Placement: a random start, shifted followers, racks in turn"),
            Row("C13", "Two nodes, the settings first"),
            Row("C14", "The answer waits for leaders, not longer than asked"),
            Row("C15", "The controller sees a new topic and brings its partitions up"),
            Row("C16", "A quota on changes", LATER),
        ),
    ),
    Section(
        "Changing topics",
        (
            Row("M1", "Settings are written and announced; every broker takes them up"),
            Row("M2", "Partitions can be added, with an assignment or without"),
            Row("M3", "Never fewer, never the same number"),
            Row("M4", "Not for unknown topics, not during a reassignment"),
            Row("M5", "Assignments of new partitions: known brokers, the same factor"),
            Row("M6", "Automatic placement goes on where the first partition began"),
            Row("M7", "The merged assignment keeps the topic's id"),
            Row("M8", "The controller brings up what it does not know yet"),
            Row("M9", "Partitions added during a deletion are taken back", LATER),
            Row("M10", "The answer waits for the new partitions, not longer than asked"),
        ),
    ),
    Section(
        "Deleting topics",
        (
            Row("D1", "Only where it is enabled"),
            Row("D2", "By name or by id, not by both"),
            Row("D3", "A mark in the store; marking twice is fine"),
            Row("D4", "The controller sees the mark, others pass it over"),
            Row("D5", "Marks of unknown topics are removed"),
            Row("D6", "Where deletion is disabled all marks are removed"),
            Row("D7", "A topic under reassignment is queued as well", LATER),
            Row("D8", "Ineligible is only who is queued already", LATER),
            Row("D9", "When a deletion goes on, waits, tries again or completes"),
            Row("D10", "Partitions end first; everyone hears of leader -2"),
            Row("D11", "Dead replicas wait, live ones are stopped and then deleted"),
            Row("D12", "Stops of a deleted topic carry epoch -2"),
            Row("D13", "An error makes the replica ineligible, success completes it"),
            Row("D14", "At the end the nodes go, leaves first, and the caches"),
            Row("D15", "What makes a waiting deletion try again", LATER),
            Row("D16", "Brokers forget a partition when its leader is -2"),
            Row("D17", "The answer waits until the topic is out of the metadata"),
        ),
    ),
    Section(
        "Followers",
        (
            Row("F1", "Only followers fetch", LATER),
            Row("F2", "The order in which a follower stops, truncates and starts", LATER),
            Row("F3", "Which fetcher a partition belongs to", LATER),
            Row("F4", "The settings of fetchers and their defaults", LATER),
            Row("F5", "Truncate, then fetch, in sessions; nothing to do waits", LATER),
            Row("F6", "A follower says who it is", LATER),
            Row("F7", "A failed request delays its partitions, not others", LATER),
            Row("F8", "Only an answer to the current offset is taken", LATER),
            Row("F9", "What is taken moves the offset and the turn", LATER),
            Row("F10", "A corrupt answer delays its partition", LATER),
            Row("F11", "A follower's high watermark follows its leader's", LATER),
            Row("F12", "A disk error takes the directory, not the process", LATER),
            Row("F13", "A leader that is shorter: truncate and go on there", LATER),
            Row("F14", "Truncation never ends the process", LATER),
            Row("F15", "A leader that begins later: start over at its start", LATER),
            Row("F16", "A leader that grew meanwhile: go on at the own end", LATER),
            Row("F17", "Three worked examples of offsets out of range", LATER),
            Row("F18", "What removes a partition from its fetcher", LATER),
            Row("F19", "Truncation by leader epochs", LATER),
            Row("F20", "Fenced partitions wait for the controller, others try again", LATER),
            Row("F21", "Figures of fetchers appear and disappear with their partitions", LATER),
        ),
    ),
    Section(
        "Controllership and the cluster",
        (
            Row("N1", "Election and resignation, fenced by the controller's epoch"),
            Row("N2", "What a new controller does, in order"),
            Row("N3", "One event after the other; an expired session goes first"),
            Row("N4", "Reassignment, step by step, and its cancelling", LATER),
            Row("N5", "Preferred leaders, and who cannot be elected", LATER),
            Row("N6", "Controlled shutdown", LATER),
            Row("N7", "Requests that wait, and when they are looked at"),
            Row("N8", "A lost log directory", LATER),
            Row("N9", "When followers leave and join the ISR", LATER),
            Row("N10", "What new means for a broker with a lost directory", LATER),
            Row("N11", "Metadata without partitions is the list of brokers"),
            Row("N12", "A broker that came back is a new one", LATER),
        ),
    ),
)

ROWS: dict[str, Row] = {row.id: row for section in SECTIONS for row in section.rows}
