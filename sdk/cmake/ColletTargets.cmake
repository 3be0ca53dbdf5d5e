# The kinds of things that this project builds. Every CMakeLists.txt below the root is written with these.
#
#   collet_add_folders(FOLDER...)
#   collet_library(NAME hlo_ir [SOURCES ...] [DEPS ...] [PUBLIC_DEPS ...])
#   collet_plugin(NAME cpu SOURCES ... [DEPS ...] [TEST_ONLY])
#   collet_test(NAME hlo_ir_shape_test SOURCES ... [DEPS ...] [LABELS unit] [TIMEOUT 60] [ARGS ...] [NO_MAIN])
#   collet_fuzzer(NAME hlo_text_fuzz SOURCES ... [DEPS ...] [SEEDS folder or file ...] [RUNS 2000] [MAX_LEN 4096])
#   collet_check(NAME tidy_names COMMAND ... [LABELS unit] [TIMEOUT 60])     any command as a test
#
# Includes are written from the root ("hlo/ir/module.h"), yet no target has the root in its include path.
# Each library offers a view: a folder in the build tree with a link to its own source folder and nothing
# else. A target sees its own view and those of its dependencies, so an include that has no arrow in the
# plan has no file to find. .ci/check_includes.py says the same with a sentence.

# Enters each folder that has a CMakeLists.txt. Where one has none yet, its arrival configures the build again.
function(collet_add_folders)
  foreach(folder IN LISTS ARGN)
    set(path "${CMAKE_CURRENT_SOURCE_DIR}/${folder}")
    if(EXISTS "${path}/CMakeLists.txt")
      add_subdirectory(${folder})
    else()
      while(NOT EXISTS "${path}")
        get_filename_component(path "${path}" DIRECTORY)
      endwhile()
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    endif()
  endforeach()
endfunction()

# Dependencies of ours are named as their folders are, hlo_ir or collet::hlo_ir; both mean the alias, so
# that a misspelt one stops the configure step and not the linker.
function(collet_resolve out)
  set(resolved)
  foreach(dependency IN LISTS ARGN)
    if(dependency MATCHES "^(hlo|sdk|reference_backends|conformance)_")
      set(dependency "collet::${dependency}")
    endif()
    list(APPEND resolved "${dependency}")
  endforeach()
  set(${out} "${resolved}" PARENT_SCOPE)
endfunction()

# The views of the folders that the given sources lie in.
function(collet_views out)
  set(views)
  foreach(source IN LISTS ARGN)
    get_filename_component(path "${source}" ABSOLUTE)
    get_filename_component(path "${path}" DIRECTORY)
    file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${path}")
    if(folder MATCHES "^\\.\\." OR folder STREQUAL "" OR folder MATCHES "^build/")
      continue()  # made by the build
    endif()
    string(MAKE_C_IDENTIFIER "${folder}" view)
    set(view "${PROJECT_BINARY_DIR}/view/${view}")
    get_filename_component(parent "${view}/${folder}" DIRECTORY)
    if(NOT EXISTS "${view}/${folder}")
      file(MAKE_DIRECTORY "${parent}")
      file(CREATE_LINK "${path}" "${view}/${folder}" SYMBOLIC)
    endif()
    list(APPEND views "${view}")
  endforeach()
  list(REMOVE_DUPLICATES views)
  set(${out} "${views}" PARENT_SCOPE)
endfunction()

# A static, position-independent library with the alias collet::NAME. Without sources it is one of headers
# only, those of the current folder. PUBLIC_DEPS are what its headers include.
function(collet_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;DEPS;PUBLIC_DEPS")
  collet_resolve(deps ${arg_DEPS})
  collet_resolve(public_deps ${arg_PUBLIC_DEPS})
  if(arg_SOURCES)
    collet_views(views ${arg_SOURCES})
    add_library(${arg_NAME} STATIC ${arg_SOURCES})
    target_include_directories(${arg_NAME} PUBLIC ${views})
    target_link_libraries(${arg_NAME} PUBLIC collet::abi ${public_deps} PRIVATE ${deps})
    target_compile_options(${arg_NAME} PRIVATE -fvisibility=hidden
                           $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)
  else()
    collet_views(views "${CMAKE_CURRENT_SOURCE_DIR}/any.h")
    add_library(${arg_NAME} INTERFACE)
    target_include_directories(${arg_NAME} INTERFACE ${views})
    target_link_libraries(${arg_NAME} INTERFACE collet::abi ${deps} ${public_deps})
  endif()
  add_library(collet::${arg_NAME} ALIAS ${arg_NAME})
endfunction()

# Everything that `collet` needs to run: the tool and the plugins.
add_custom_target(kit)

# A backend: libcollet_backend_NAME.so with one exported symbol, collet_backend_entry. TEST_ONLY ones lie in
# lib/collet/test_backends and are not installed.
function(collet_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "TEST_ONLY" "NAME" "SOURCES;DEPS")
  collet_resolve(deps ${arg_DEPS})
  collet_views(views ${arg_SOURCES})
  set(target collet_backend_${arg_NAME})
  add_library(${target} MODULE ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${views})
  target_link_libraries(${target} PRIVATE collet::abi ${deps})
  set(exports "${PROJECT_SOURCE_DIR}/sdk/cmake/plugin_exports.map")
  set_target_properties(${target} PROPERTIES PREFIX lib C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS "${exports}")
  target_link_options(${target} PRIVATE "-Wl,--version-script,${exports}" -Wl,--exclude-libs,ALL)
  if(NOT COLLET_SANITIZE AND NOT COLLET_LIBFUZZER)  # a sanitizer's functions come with the executable
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  if(arg_TEST_ONLY)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${COLLET_TEST_BACKENDS_OUTPUT_DIR}")
  else()
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${COLLET_BACKENDS_OUTPUT_DIR}")
    install(TARGETS ${target} LIBRARY DESTINATION "${COLLET_INSTALL_BACKENDS_DIR}")
    add_dependencies(kit ${target})
  endif()
  collet_check(NAME exports_${arg_NAME} LABELS abi
               COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/sdk/cmake/check_exports.py" --nm "${CMAKE_NM}"
                       "$<TARGET_FILE:${target}>" collet_backend_entry)
endfunction()

set(COLLET_LABELS unit golden abi conform corpus fuzz long)

# One ctest entry per test program. It runs in the root of the source tree, so that test data are named as they
# are there; COLLET_BACKEND_PATH names the plugins of this build, and the cpu
# backend verifies its kernels. Started by hand, the program gives itself the same (test_environment.cc).
function(collet_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "NO_MAIN" "NAME;TIMEOUT" "SOURCES;DEPS;LABELS;ARGS")
  if(NOT COLLET_WITH_TESTS)
    return()
  endif()
  collet_resolve(deps ${arg_DEPS})
  collet_views(views ${arg_SOURCES})
  if(NOT TARGET collet_test_environment)
    add_library(collet_test_environment OBJECT "${PROJECT_SOURCE_DIR}/sdk/cmake/test_environment.cc")
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES} $<TARGET_OBJECTS:collet_test_environment>)
  target_include_directories(${arg_NAME} PRIVATE ${views})
  target_link_libraries(${arg_NAME} PRIVATE collet::abi ${deps})
  if(NOT arg_NO_MAIN)
    target_link_libraries(${arg_NAME} PRIVATE GTest::gmock GTest::gtest_main)
  endif()
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  collet_check(NAME ${arg_NAME} COMMAND ${arg_NAME} ${arg_ARGS} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
endfunction()

# Any other ctest entry. EXPECT: a regular expression that its output must match, whatever the exit status. AFTER: entries
# that run before it, also where only this one was chosen. FAILS: its command must fail.
function(collet_check)
  cmake_parse_arguments(PARSE_ARGV 0 arg "FAILS" "NAME;TIMEOUT;EXPECT" "COMMAND;LABELS;AFTER")
  if(NOT COLLET_WITH_TESTS)
    return()
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  foreach(label IN LISTS arg_LABELS)
    if(NOT label IN_LIST COLLET_LABELS)
      message(FATAL_ERROR "${arg_NAME}: no such label: ${label} (there are: ${COLLET_LABELS})")
    endif()
  endforeach()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(COLLET_SANITIZE OR COLLET_COVERAGE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 10")
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT
    "COLLET_BACKEND_PATH=${COLLET_BACKENDS_OUTPUT_DIR};COLLET_BUILD_DIR=${PROJECT_BINARY_DIR};UBSAN_OPTIONS=print_stacktrace=1;COLLET_CPU_VERIFY=1")
  if(arg_EXPECT)
    set_tests_properties(${arg_NAME} PROPERTIES PASS_REGULAR_EXPRESSION "${arg_EXPECT}")
  endif()
  if(arg_AFTER)
    set_tests_properties(${arg_NAME} PROPERTIES FIXTURES_REQUIRED "${arg_AFTER}")
    foreach(before IN LISTS arg_AFTER)
      set_tests_properties(${before} PROPERTIES FIXTURES_SETUP ${before})
    endforeach()
  endif()
  if(arg_FAILS)
    set_tests_properties(${arg_NAME} PROPERTIES WILL_FAIL TRUE)
  endif()
endfunction()

# SOURCES define LLVMFuzzerTestOneInput. Under the fuzz preset libFuzzer drives it; elsewhere fuzz_main.cc does, with
# the same options. As a test it makes RUNS runs from a fixed seed.
function(collet_fuzzer)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;RUNS;MAX_LEN;TIMEOUT" "SOURCES;DEPS;SEEDS")
  if(NOT COLLET_WITH_TESTS)
    return()
  endif()
  collet_resolve(deps ${arg_DEPS})
  collet_views(views ${arg_SOURCES})
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_include_directories(${arg_NAME} PRIVATE ${views})
  target_link_libraries(${arg_NAME} PRIVATE collet::abi ${deps})
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  if(COLLET_LIBFUZZER)
    target_link_options(${arg_NAME} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}/sdk/cmake/fuzz_main.cc")
  endif()
  if(NOT arg_RUNS)
    set(arg_RUNS 2000)
  endif()
  if(NOT arg_MAX_LEN)
    set(arg_MAX_LEN 4096)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set(found "${PROJECT_BINARY_DIR}/fuzz/${arg_NAME}.found")  # libFuzzer keeps new inputs in the first folder
  file(MAKE_DIRECTORY "${found}")
  collet_check(NAME ${arg_NAME} LABELS fuzz TIMEOUT ${arg_TIMEOUT}
               COMMAND ${arg_NAME} -runs=${arg_RUNS} -seed=1 -max_len=${arg_MAX_LEN} "-artifact_prefix=${found}/../"
                       "${found}" ${arg_SEEDS})
endfunction()

if(COLLET_WITH_TESTS)
  enable_testing()
endif()
