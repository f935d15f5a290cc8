# A test of the tests: builds that break the contract on purpose, each in one source file and one
# way, where that file asks for a macro LS_MUTANT_...:
#
#   FLOATS     gradients are rounded as sums of floats are, in the order in which they arrive
#   GENERATOR  each thread has a random number generator of its own
#   FORGETFUL  workers other than the first forget a micro-batch now and then
#   STATISTICS batch statistics are those of the micro-batches that the worker has run itself
#   DEAF       what one rank has of a gradient is left out of the sum over ranks
#   SELFISH    batch statistics are those of the micro-batches that the rank has run itself
#
# `verify` must find the difference, and so must the test of the promise; the build without any
# (SOUND) must pass both. The broken file is linked in front of the library, whose own then stays
# out.
if(NOT TARGET ls_support OR NOT TARGET ls_api)
  return()
endif()

# `test` and `filter`: the test of the promise that must find it, which says `difference`.
function(ls_mutant name source test filter difference)
  string(TOLOWER ${name} lower)
  set(verify mutant_${lower}_verify)
  set(workers mutant_${lower}_workers)
  ls_test(${verify} ${CMAKE_SOURCE_DIR}/tests/numerics/mutant.c ${LS_MODULES})
  # The test of the promise itself, one case of it, run on the broken build.
  ls_test(${workers} ${CMAKE_SOURCE_DIR}/tests/numerics/${test}.c ${LS_MODULES})
  foreach(program ${verify} ${workers})
    target_compile_definitions(${program} PRIVATE LS_MUTANT_${name})
    if(source)
      target_sources(${program} PRIVATE ${CMAKE_SOURCE_DIR}/src/${source})
    endif()
  endforeach()
  # The trainings of `verify` get their schedule where they make their engines.
  target_link_options(${verify} PRIVATE -Wl,--wrap=ls_engine_create)
  set_tests_properties(${workers} PROPERTIES ENVIRONMENT
    "${LS_TEST_ENVIRONMENT};LOCKSTEP_TEST_FILTER=${filter}")
  if(source)
    set_tests_properties(${workers} PROPERTIES
      PASS_REGULAR_EXPRESSION "${difference}: the snapshots differ from byte")
  endif()
endfunction()

set(held test_workers test_held_back "held back, 2 workers")
ls_mutant(SOUND "" ${held})
ls_mutant(FLOATS transport/sums.c ${held})
ls_mutant(GENERATOR ops/cpu/dropout.c ${held})
ls_mutant(FORGETFUL engine/run.c ${held})
ls_mutant(STATISTICS engine/exchange.c test_batch_norm test_groups
  "batches of 32, groups of 0, 2 workers")

# Mutants of what ranks do together: the test of the promise for ranks must find them.
function(ls_mutant_of_ranks name source)
  string(TOLOWER mutant_${name}_ranks test)
  ls_test(${test} ${CMAKE_SOURCE_DIR}/tests/numerics/test_ranks.c ${LS_MODULES})
  target_compile_definitions(${test} PRIVATE LS_MUTANT_${name})
  target_sources(${test} PRIVATE ${CMAKE_SOURCE_DIR}/src/${source})
  set_tests_properties(${test} PROPERTIES PASS_REGULAR_EXPRESSION
    "differs from byte|is not finite")
endfunction()
ls_mutant_of_ranks(DEAF engine/travel.c)
ls_mutant_of_ranks(SELFISH engine/exchange.c)
