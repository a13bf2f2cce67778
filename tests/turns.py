"""Turns: what takes long is run by one run in five, so that five commits in a row run all of it.

A part that is run alone, a class that is attacked, a hub with its students, an explorer turned to both its ends: each
takes long and checks something that few changes touch. `book.py test` runs a fifth of them and says which;
`--thorough` runs them all, and so does a run that names files. A change to what is listed here runs it by name before
it is committed.
"""

from collections.abc import Iterable, Sequence

TURNS = 5
# Files that make one thing for all their tests, by turn. The turns take about as long as each other; the pages, which
# take four minutes to build, are built in one of them.
BY_TURN = (
    (
        "test_hub.py",
        "test_browser_explorers.py",
        "test_measure_ranks.py",
        "test_grading_command.py",
        "test_measure_stack.py",
        "test_workers.py",
        "test_published_layouts.py",
        "test_second_opinions.py",
        "test_log_command.py",
        "test_mixed_precision.py",
        "test_soc_fit.py",
        "test_canvas.py",
        "test_information_age.py",
        "test_measure_hosts.py",
        "test_measure_config_caches.py",
        "test_recorded.py",
        "test_measure_experts_contexts.py",
        "test_pipeline_widget.py",
        "test_message_ways.py",
        "test_number_formats.py",
    ),
    (
        "test_wheel.py",
        "test_sheets.py",
        "test_exchange_bytes.py",
        "test_code.py",
        "test_light_door.py",
        "test_touched.py",
        "test_timeline_widget.py",
        "test_serving_run.py",
        "test_trouble.py",
        "test_term.py",
        "test_released.py",
        "test_trace.py",
        "test_small_language_model.py",
        "test_interview_widget.py",
        "test_dla_nodes.py",
        "test_joint_training.py",
        "test_response_time.py",
        "test_measure_known_truths.py",
        "test_terminal.py",
        "test_browser_interview.py",
        "test_serve.py",
        "test_quiz.py",
        "test_gguf_files.py",
        "test_expected_token.py",
        "test_waiting_times.py",
        "test_redundant_experts.py",
        "test_graded_there.py",
        "test_capacity.py",
        "test_measure_sharded_state.py",
        "test_exported.py",
        "test_printed.py",
        "test_tables.py",
        "test_kernel_starts.py",
        "test_replica_runs.py",
        "test_two_batches.py",
        "test_measure_pipeline.py",
        "test_perception_cost.py",
        "test_tiled_gemm.py",
        "test_browser_panel.py",
        "test_chip_deadlines.py",
    ),
    (
        "test_grading_hostile.py",
        "test_hunt.py",
        "test_recording.py",
        "test_plan.py",
        "test_traces.py",
        "test_measure_compiling.py",
        "test_measure_counted_class.py",
        "test_sharded_mixed.py",
        "test_parameters.py",
        "test_kernel_counts.py",
        "test_preparation.py",
        "test_warm_process.py",
        "test_references.py",
        "test_grading_durable.py",
        "test_explanations.py",
        "test_groups.py",
        "test_term_refusals.py",
        "test_serve_pools.py",
        "test_used.py",
        "test_after.py",
        "test_convnets.py",
        "test_trace_command.py",
        "test_alternatives.py",
        "test_quantised.py",
        "test_shared_blocks.py",
        "test_adapted_memory.py",
        "test_gguf_formats.py",
        "test_measure_kv_cache.py",
        "test_adapter_times.py",
        "test_measure_own_traces.py",
        "test_browser.py",
        "test_resumed_run.py",
    ),
    (
        "test_cells.py",
        "test_running.py",
        "test_site_axe.py",
        "test_site_browser.py",
        "test_site_cards.py",
        "test_site_explorers.py",
        "test_site_failures.py",
        "test_site_memory.py",
        "test_site_phone.py",
        "test_site_predictions.py",
        "test_site_ways_on.py",
        "test_room_page.py",
        "test_serving_page.py",
        "test_pages.py",
        "test_first_page.py",
        "test_heads.py",
        "test_weight.py",
        "test_book_as_epub.py",
        "test_finding.py",
        "test_as_written.py",
        "test_site_functions.py",
        "test_site_printed.py",
        "test_site_offline.py",
        "test_drawn_anew.py",
        "test_measure_wire.py",
        "test_taken_apart.py",
        "test_possible.py",
        "test_attention_io.py",
        "test_expected_times.py",
        "test_word_and_latex.py",
        "test_number_line.py",
        "test_gemm_tiles.py",
        "test_joint_formulas.py",
        "test_shares.py",
        "test_draws.py",
        "test_measure_streaming.py",
    ),
    (
        "test_machines.py",
        "test_other_processors.py",
        "test_elsewhere.py",
        "test_intake_hostile.py",
        "test_serving_questions.py",
        "test_partial_credit.py",
        "test_gradebook.py",
        "test_grading_parts.py",
        "test_students_side.py",
        "test_reliability.py",
        "test_measure_driving.py",
        "test_measure_quantisers.py",
        "test_faster_perception.py",
        "test_hand_ins.py",
        "test_planner.py",
        "test_data_parallel.py",
        "test_simulated_points.py",
        "test_measure_server.py",
        "test_measure_server_load.py",
        "test_measure_tensor_parallel.py",
        "test_teaching.py",
        "test_serving.py",
        "test_copies.py",
        "test_served_points.py",
        "test_trial.py",
        "test_serve_on_page.py",
        "test_sensor_data.py",
        "test_cards.py",
        "test_scenarios.py",
        "test_typed_code.py",
        "test_expert_layers.py",
        "test_compression.py",
        "test_training_stack_widget.py",
        "test_measure_speculative.py",
        "test_prefill_runs.py",
        "test_measure_timing.py",
    ),
)
WHOLE = {file: turn for turn, files in enumerate(BY_TURN) for file in files}
# The turn of the pages, which are long to build, and the others; what takes turns test by test takes those, but for
# what there is enough of.
PAGES = 3
OTHERS = tuple(turn for turn in range(TURNS) if turn != PAGES)
IN_ALL = ("test_parts_run.py", "test_conditions.py")
# Files whose parametrised tests take turns one by one, and the turn of the first.
ONE_BY_ONE = {
    "test_parts_run.py": 3,
    "test_without_torch.py": 4,
    "test_conditions.py": 1,
    "test_explorers.py": 0,
    "test_browser_desk.py": 3,
    "test_hf_config.py": 0,
    "test_published_configs.py": 2,
    "test_code_tasks.py": 1,
    "test_choices.py": 4,
    "test_ideas.py": 3,
    "test_bands.py": 1,
    "test_chains.py": 1,
    "test_grading_functions.py": 2,
    "test_model_flops.py": 1,
    "test_recurrent_flops.py": 2,
    "test_simt.py": 1,
    "test_spelling.py": 2,
}
# The same, by the last word of a test's name: what is made for one drill set is made once.
BY_SET = ("test_grading_canaries.py", "test_release.py")
# Single tests of files that else belong to every run.
BY_TEST = {
    "test_digests.py::test_no_task_has_moved": 1,
    "test_links.py::test_clicked_links_lead_to_their_parts_and_back": 4,
}
# One explorer each, but for this one.
EXPLORER, DESK = "test_browser_", "test_browser_desk.py"


def turns(tests: Sequence[str]) -> dict[str, int]:
    """The turn of every test, called by its node id, that has one.

    >>> found = turns(["tests/a/test_hub.py::test_b", "tests/a/test_parts_run.py::test_c[one]", "tests/a/test_d.py::e"])
    >>> list(found.values())
    [0, 3]
    """
    explorers = {file: number for number, file in enumerate(sorted({_file(test) for test in tests if _explorer(test)}))}
    places = {key: number for file in ONE_BY_ONE for number, key in enumerate(_varied(tests, (file,)))}
    sets = {name: number for number, name in enumerate(sorted({_variant(test) for test in _varied(tests, BY_SET)}))}
    found = {}
    for test in tests:
        file = _file(test)
        if file in WHOLE:
            found[test] = WHOLE[file]
        elif test.rpartition("/")[2] in BY_TEST:
            found[test] = BY_TEST[test.rpartition("/")[2]]
        elif test in places:
            found[test] = _place(ONE_BY_ONE[file] + places[test], range(TURNS) if file in IN_ALL else OTHERS)
        elif file in explorers:
            found[test] = _place(explorers[file], OTHERS)
        elif file in BY_SET and _variant(test) in sets:
            found[test] = _place(sets[_variant(test)], OTHERS)
    return found


def _place(number: int, among: Sequence[int]) -> int:
    return among[number % len(among)]


def _file(test: str) -> str:
    return test.partition("::")[0].rpartition("/")[2]


def _variant(test: str) -> str:
    return test.partition("[")[2]


def _explorer(test: str) -> bool:
    return _file(test).startswith(EXPLORER) and _file(test) not in (DESK, *WHOLE)


def _varied(tests: Iterable[str], files: tuple[str, ...]) -> list[str]:
    return [test for test in tests if _file(test) in files and _variant(test)]
