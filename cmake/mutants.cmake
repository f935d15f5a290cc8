# A test of the tests: mistakes that break the contract on purpose, each where a source file asks for
# LS_MUTANT(NAME) (base/mutant.h):
#
#   FLOATS     gradients are rounded as sums of floats are, in the order in which they arrive
#   GENERATOR  each thread has a random number generator of its own
#   FORGETFUL  workers other than the first forget a micro-batch now and then
#   STATISTICS batch statistics are those of the micro-batches that the worker has run itself
#   EXPONENTS  a resume does not restore the exponents of the sums
#   ORDINAL    random numbers count samples from where the run began, which may be a resume
#   TWICE      an update that is repeated advances the moving averages each time
#   REPLAYED   what is computed again may have effects, which then happen twice
#   LIMIT      a limit on memory makes a layer take another kernel and another layout
#   DENORMALS  workers other than the first keep denormal numbers
#   TRACE      a snapshot says how many workers there were
#   ARRIVAL    figures of tests are added up in the order in which micro-batches are done
#   DEAF       what one rank has of a gradient is left out of the sum over ranks
#   SELFISH    batch statistics are those of the micro-batches that the rank has run itself
#   RATE       ranks other than the first have a learning rate of their own
#   FILLER     each rank fills weights with numbers of its own
#   GRANT      a micro-batch is given to two ranks
#   LOST       a micro-batch is given to no rank
#   ROUNDED    a filler's normal numbers are rounded once more
#   CORRECTION Adam's correction is rounded once more
#
# Each is found by one case of one test, which says what it says of that mistake: an expression that
# another failure would match proves nothing. The sources with mistakes are compiled once more, and
# linked in front of the library, whose own then stay out; LOCKSTEP_MUTANT chooses one of them.
#
# Of the first four `verify` must find the difference, too; without any (SOUND) it must pass what they
# fail.
if(NOT TARGET ls_support OR NOT TARGET ls_api)
  return()
endif()

# ls_mutant_test(TEST NAME SOURCE FILTER EXPRESSION COMMAND...): the case FILTER with the mistake NAME,
# which is in SOURCE, must say EXPRESSION; "" are none.
set(mutated "")
function(ls_mutant_test test name source filter expression)
  ls_add_test(${test} ${ARGN})
  set_tests_properties(${test} PROPERTIES
    ENVIRONMENT "${LS_TEST_ENVIRONMENT};LOCKSTEP_MUTANT=${name};LOCKSTEP_TEST_FILTER=${filter}")
  if(expression)
    set_tests_properties(${test} PROPERTIES PASS_REGULAR_EXPRESSION "${expression}")
  endif()
  if(source)
    set(mutated ${mutated} ${CMAKE_SOURCE_DIR}/src/${source} PARENT_SCOPE)
  endif()
endfunction()

# `verify`, and one case of the test of the promise itself.
macro(ls_mutant name source verified test filter difference)
  string(TOLOWER ${name} lower)
  ls_mutant_test(mutant_${lower}_verify ${name} "" "${verified}" "" mutants_verify)
  if(${name} STREQUAL "SOUND")
    ls_mutant_test(mutant_${lower}_workers ${name} "" ${filter} "" mutants ${test})
  else()
    ls_mutant_test(mutant_${lower}_workers ${name} ${source} ${filter}
      "${difference}: the snapshots differ from byte" mutants ${test})
  endif()
endmacro()

set(held test_workers a_micro_batch_held_back_changes_no_bit "held back, 2 workers")
ls_mutant(SOUND "" "*" ${held})
# These need the order of the first net, or the statistics of the second one.
ls_mutant(FLOATS ops/cpu/accumulator.c verify_finds_mutants ${held})
ls_mutant(GENERATOR ops/cpu/dropout.c verify_finds_mutants ${held})
ls_mutant(FORGETFUL engine/run.c "*" ${held})
ls_mutant(STATISTICS engine/exchange.c verify_finds_mutants_of_batch_statistics test_batch_norm
  any_workers_give_same_bits_with_any_groups "batches of 32, groups of 0, 2 workers")

# `test` (of tests/numerics) must find it in its case `filter`, and say so.
macro(ls_mutant_in name source test filter expression)
  string(TOLOWER mutant_${name} mutant)
  ls_mutant_test(${mutant} ${name} ${source} ${filter} "${expression}" mutants ${test})
endmacro()
ls_mutant_in(EXPONENTS solver/resume.c test_cuts
  a_resumed_training_writes_the_snapshot_it_was_resumed_from
  "resumed at [0-9]*, nothing done: the snapshots differ from byte")
ls_mutant_in(ORDINAL engine/micro_batch.c test_cuts
  stop_and_resume_at_every_iteration_gives_same_bits
  "cut at [0-9]*, resumed: [^ ]*: the snapshots differ from byte")
ls_mutant_in(TWICE engine/step.c test_overflow a_repeated_update_advances_the_averages_once
  "norm.mean is advanced otherwise where the update is repeated")
ls_mutant_in(LIMIT plan/plan.c test_memory_limits memory_limits_change_no_bit
  "a deep chain, 1 workers, 1 bytes: the snapshots differ from byte")
ls_mutant_in(DENORMALS engine/thread_pool.c test_workers
  any_workers_give_same_bits_with_denormal_numbers
  "denormal numbers, 2 workers: the snapshots differ from byte")
ls_mutant_in(TRACE solver/checkpoint.c test_workers a_micro_batch_held_back_changes_no_bit
  "held back, 2 workers: the snapshots differ from byte")
ls_mutant_in(ARRIVAL engine/run.c test_workers
  test_phases_leave_no_trace_and_have_same_figures_on_any_workers
  "figures of a test, [2-9] workers: the snapshots differ from byte")

# What ranks do together.
ls_mutant_in(DEAF engine/reducer_sums.c test_ranks any_ranks_give_the_bits_of_one_process
  "dropout: rank [01] of 2 with 1 workers differs from byte")
ls_mutant_in(SELFISH engine/exchange.c test_ranks any_ranks_give_the_bits_of_one_process
  "the batch's statistics: rank [01] of 2: iteration 1: weights differ between ranks")
ls_mutant_in(RATE solver/trainer.c test_ranks any_ranks_give_the_bits_of_one_process
  "dropout: rank [01] of 2 with 1 workers differs from byte")
ls_mutant_in(FILLER engine/store.c test_ranks any_ranks_give_the_bits_of_one_process
  "dropout: rank [01] of 2: before the first update: weights differ between ranks")
ls_mutant_in(GRANT engine/work_queue.c test_ranks work_queue_gives_the_bits_of_one_process
  "dropout: rank [01] of 2: micro-batch [0-9]* was given to 2 ranks")
ls_mutant_in(LOST engine/work_queue.c test_ranks work_queue_gives_the_bits_of_one_process
  "dropout: rank [01] of 2: micro-batch [0-9]* was given to 0 ranks")

# Mutants whose runs agree with each other: the table of golden bits must find them, in `net`.
macro(ls_mutant_of_bits name source net difference)
  string(TOLOWER mutant_${name}_golden test)
  ls_mutant_test(${test} ${name} ${source} ${net}
    "golden bits of ${net} on sse41 are others .own kernels on any instruction set.: ${difference}"
    mutants_golden sse41)
endmacro()
ls_mutant_of_bits(ROUNDED ops/cpu/filler.c own_functions
  "update 0 is the first that differs, parameter last.scale the first there .1 of 4 differ.")
ls_mutant_of_bits(CORRECTION device/update.c check_own
  "update 10 is the first that differs, parameter first.scale the first there .* its loss agrees")
ls_mutant_of_bits(REPLAYED plan/recompute.c own_losses
  "the loss of update 1 differs, all weights agree")

# Those of tests of cards (cmake/cuda.cmake).
foreach(source binding direct_update micro_batch reducer_factors reducer_sums run staging sums uploader)
  list(APPEND mutated ${CMAKE_SOURCE_DIR}/src/engine/${source}.c)
endforeach()
list(REMOVE_DUPLICATES mutated)
add_library(ls_mutants OBJECT ${mutated})
target_compile_definitions(ls_mutants PRIVATE LS_MUTANTS)
target_link_libraries(ls_mutants PRIVATE ${LS_MODULES})
set(objects $<TARGET_OBJECTS:ls_mutants>)
ls_test_program(mutants "${objects};$<TARGET_OBJECTS:ls_tests_numerics>" ls_trainings ${LS_MODULES})
ls_test_program(mutants_golden "${objects};$<TARGET_OBJECTS:ls_golden>" ${LS_MODULES})
ls_test_program(mutants_verify "${objects};${CMAKE_SOURCE_DIR}/tests/numerics/mutant.c" ls_trainings
  ${LS_MODULES})
# The trainings of `verify` get their schedule where they make their engines.
target_link_options(mutants_verify PRIVATE -Wl,--wrap=ls_engine_create)

# A build with a core that computes wrongly now and then, which audits must find: tests, and a
# program that scripts run (LOCKSTEP_FAULT says which core, see tests/support/fault.h).
ls_test(numerics_faulty_core ${CMAKE_SOURCE_DIR}/tests/numerics/faulty_core.c
  ls_trainings ${LS_MODULES})
target_link_options(numerics_faulty_core PRIVATE -Wl,--wrap=ls_layer_type_find)
add_executable(lockstep_faulty ${CMAKE_SOURCE_DIR}/src/cli/main.c)
target_link_libraries(lockstep_faulty PRIVATE ls_command_line ls_support ${LS_MODULES})
set_target_properties(lockstep_faulty PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
foreach(target numerics_faulty_core lockstep_faulty)
  target_compile_definitions(${target} PRIVATE LS_FAULTY_CORE="support/fault.h")
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src/engine/micro_batch.c)
endforeach()
