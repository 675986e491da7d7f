"""The promises of docs/reliability.md, and the programs that measure them: scripts/trust runs the programs and makes the table.

A part is a script of tests/, or a file of unit tests. A script that measures adds figures of its own (figures.py); of one that only checks, the
figure is the number of its checks. `minutes`: how long its walk takes at most; it then says how far it came."""

import dataclasses
import os

PROMISES = {
    "P1": "no code of a file runs",
    "P2": "damage is refused with file, tensor and reason",
    "P3": "correct input is accepted",
    "P4": "no parser leaves its memory",
    "P5": "verify, the conversions and the reference libraries agree",
    "P6": "nothing hangs",
    "P7": "memory is bounded",
    "P8": "a kill leaves the old or the new checkpoint",
    "P9": "a power cut leaves the old or the new checkpoint",
    "P10": "a full disk is an error, nothing is lost",
    "P11": "errors of reads and writes are told",
    "P12": "too little memory is told",
    "P13": "a lost rank is noticed",
    "P14": "silent corruption is found",
    "P15": "signals end the command in 2 s",
    "P16": "one of two writers wins",
    "P17": "no order of threads or ranks changes a result",
    "P18": "messages attack no terminal and no page",
    "P19": "a source that changes is an error",
}


@dataclasses.dataclass
class Part:
    path: str  # below tests/
    promises: list
    minutes: float = 20
    arguments: tuple = ()  # of a walk at length
    share: str = ""  # an argument: the share of the walk that is a part of its own, so that several machines or runs can measure one walk

    @property
    def name(self):
        name = os.path.splitext(self.path)[0]
        return name.replace("_test", "") if self.is_unit else f"{name} {self.share}" if self.share else name

    @property
    def is_unit(self):
        return self.path.endswith(".cc")


def part(promises, *paths, minutes=20, arguments=(), shares=("",)):
    return [Part(path, promises.split(), minutes, arguments, share) for path in paths for share in shares]


PARTS = [
    *part("P1 P2 P3 P6 P18", "program/verify/bad_files.py"),
    *part("P1", "program/verify/system_calls_of_bad_files.py"),
    *part("P1", "program/general/looking_changes_nothing.sh"),
    *part("P2", "program/verify/faults_that_tools_miss.py", "program/verify/dtensors_that_lie.py", "judges/known_damage.py"),
    *part("P3", "judges/torch_files.py", "judges/torch_versions.py", "judges/real_checkpoints.py"),
    *part("P4 P5", "fuzz/executions.py", minutes=20),
    *part("P4 P5", "faults/mutated_folders.py", minutes=20),
    *part("P4", "faults/damaged_hdf5_files.py", minutes=30),
    *part("P5", "judges/mutated_files.py", minutes=30),
    *part("P6", "program/verify/time_of_bad_files.py", minutes=30),
    *part("P6", "program/ls/small_hdf5_files_cost_little.py"),
    *part("P7", "program/inspect/memory_of_inspect.py"),
    *part("P7 P17", "program/convert/same_bytes.py"),
    *part("P7", "faults/large_in_little_memory.py", "faults/network_disks.py", minutes=30),
    *part("P7 P11 P16", "faults/nfs_disks.py", minutes=30),
    *part("P8 P10 P11", "faults/stopped_runs.py"),
    *part("P8", "faults/replaced_runs.py", "unit/io/output/staged_folder_test.cc", "unit/io/output/staged_file_test.cc"),
    *part("P8", "faults/resumed_runs_trust_nothing.py"),
    *part("P8", "faults/killed_runs.py", minutes=40),
    *part("P9", "faults/last_steps.py"),
    *part("P9", "faults/power_cuts.py", minutes=30),
    *part("P10", "faults/full_disks_are_refused.sh"),
    *part("P10", "faults/small_disks.py", minutes=30),
    *part("P10 P11", "faults/every_call_fails.py", minutes=60, shares=("conversions", "looks")),
    *part("P11", "faults/closing_fails.py", "unit/io/file/file_test.cc"),
    *part("P12", "faults/too_little_memory_is_told.sh", "faults/too_little_memory_to_start_is_told.sh"),
    *part("P12", "faults/every_allocation_fails.py", minutes=40),
    *part("P13", "faults/watched_ranks.py", "faults/ranks_that_do_not_meet.py"),
    *part("P13", "faults/lost_rank.py", arguments=("--ranks", "4", "--kills", "20", "--repeat", "60", "--seconds", "20", "--tp", "2", "--ep", "2", "--dp", "2", "--vocab-size", "auto", "--rank-timeout", "6")),
    *part("P13", "faults/lost_rank_on_gpus.py"),
    *part("P13", "faults/ranks_in_every_phase.py", minutes=40, shares=("2", "4", "8")),
    *part("P14", "faults/every_flipped_bit_is_found.py", "program/verify/readers_judge_by_the_manifest.sh", "faults/damaged_sources.py"),
    *part("P14", "python/cards_find_every_change.py", arguments=("10000",), minutes=60),
    *part("P15", "faults/signals_leave_nothing.sh"),
    *part("P15", "faults/signals_at_any_moment.py"),
    *part("P16", "faults/many_writers.py"),
    *part("P17", "unit/io/copy/engine_test.cc", "unit/io/copy/large_task_test.cc", "unit/io/file/parallel_test.cc"),
    *part("P17", "faults/equal_runs.py", minutes=40, shares=("conversions", "models", "refusals", "looks")),
    *part("P17", "faults/reports_of_races.py", minutes=40),
    *part("P18", "program/plot/names_stay_text.py", "judges/cards_are_inert.py", "program/general/hostile_pages.py"),
    *part("P19", "faults/changed_sources.py", "unit/io/file/source_stamps_test.cc", "faults/a_file_that_shrinks_is_an_error.sh"),
]
