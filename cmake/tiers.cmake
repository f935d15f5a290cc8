# Tiers of tests, as labels (./run test quick, ./run test, ./run test long; docs/reliability.md says what
# each finds). Cards have a label of their own (cmake/cuda.cmake).

# Sweeps that repeat on every instruction set, on the slow reference, or at random what others hold.
set(long compat_test_torch_reference golden_reference ops_cpu_test_bf16_convolution_amx
    ops_cpu_test_bf16_inner_product_amx torture)
# Units that take more than some seconds.
set(slow base_test_hdf5 ops_cpu_test_bf16_convolution ops_cpu_test_bf16_inner_product ops_test_bf16_kernels
    plan_test_recompute text_test_files text_test_reference transport_test_failure_endings
    transport_test_watchdog)
# The promise: bits on this processor, on any workers and ranks, after a resume, in less memory; the
# program's first steps; memory that runs out.
set(promise faults_files faults_test_memory_texts faults_usage golden_avx2 golden_avx512 numerics_test_batch_norm
    numerics_test_cuts numerics_test_exact_sums numerics_test_memory_limits numerics_test_overflow
    numerics_test_ranks numerics_test_rank_snapshots numerics_test_verify numerics_test_workers)

get_property(tests DIRECTORY PROPERTY TESTS)
foreach(test ${tests})
  if(test IN_LIST long)
    set_tests_properties(${test} PROPERTIES LABELS long)
  elseif(test IN_LIST promise OR test MATCHES "^(mutant|tree)_" OR
         (test MATCHES "^(api|base|cli|data|device|engine|graph|ir|layers|monitor|observe|onnx|ops|ops_cpu|plan|report|schema|snapshot|solver|support|sweep|text|transport)_test_"
          AND NOT test IN_LIST slow))
    set_tests_properties(${test} PROPERTIES LABELS quick)
  endif()
endforeach()
