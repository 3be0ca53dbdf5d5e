# For projects of backends, which get these functions by find_package(Collet).
#
#   collet_add_backend(NAME SOURCES ... [DEPS ...])
#   collet_add_wheels(NAME)

# Adds the target collet_backend_NAME, the shared library libcollet_backend_NAME.so, with its installation. It sees the
# headers, and links DEPS alone. Its one visible symbol is collet_backend_entry: without the list of exports, templates
# of the standard library would be visible too. The code is C11 or C++17 unless the project says otherwise, and optimised
# where the caller has no build type.
function(collet_add_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  set(target collet_backend_${name})
  set(exports "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin_exports.map")
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE collet::abi ${arg_DEPS})
  set_target_properties(${target} PROPERTIES PREFIX lib C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS "${exports}")
  # The installed library has the RUNPATH that it is linked with. Where the installation changes it, CMake pads the first one with
  # empty elements, and these stand for the working folder of whoever loads the library. The libraries that it needs are looked
  # for beside it and in lib, where a wheel has them, and then where they were linked from.
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
  set_property(TARGET ${target} PROPERTY INSTALL_RPATH "$ORIGIN" "$ORIGIN/../.." ${CMAKE_INSTALL_RPATH})
  target_link_options(${target} PRIVATE "-Wl,--version-script,${exports}" -Wl,--exclude-libs,ALL)
  if(NOT CMAKE_C_STANDARD)
    set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON)
  endif()
  if(NOT CMAKE_CXX_STANDARD)
    set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
  endif()
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release PARENT_SCOPE)
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION lib/collet/backends)
endfunction()

# Adds the targets wheel, wheel_torch and wheel_tensorflow, which pack this backend for JAX, PyTorch/XLA and TensorFlow:
# NAME_jax-*.whl, NAME_torch-*.whl and NAME_tensorflow-*.whl, of the project's version, with Collet's PJRT plugin and a fallback
# in them. Without Python, or without the plugin in this Collet, there are no such targets.
function(collet_add_wheels name)
  set(root "${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
  find_file(COLLET_WHEEL_SCRIPT wheel.py NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH
            PATHS "${root}/share/collet/python" "${root}/../../../share/collet/python")
  find_package(Python3 COMPONENTS Interpreter)
  string(TOUPPER "${name}" upper)
  set(${upper}_WHEEL_FALLBACK cpu CACHE STRING
      "The backend that runs what ${name} does not, in the wheel: cpu, interpreter or none")
  if(NOT COLLET_WHEEL_SCRIPT OR NOT Python3_FOUND)
    return()
  endif()
  cmake_path(SET prefix NORMALIZE "${COLLET_WHEEL_SCRIPT}/../../../..")
  foreach(frontend IN ITEMS jax torch tensorflow)
    set(target wheel)
    if(NOT frontend STREQUAL jax)
      set(target wheel_${frontend})
    endif()
    add_custom_target(${target} VERBATIM
      COMMAND "${Python3_EXECUTABLE}" "${COLLET_WHEEL_SCRIPT}" --build "${prefix}" --frontend ${frontend}
              --name ${name} --version "${PROJECT_VERSION}" --backend "$<TARGET_FILE:collet_backend_${name}>"
              --fallback "${${upper}_WHEEL_FALLBACK}" --output "${CMAKE_CURRENT_BINARY_DIR}")
    add_dependencies(${target} collet_backend_${name})
  endforeach()
endfunction()
