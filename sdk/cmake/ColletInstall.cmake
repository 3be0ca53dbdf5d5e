# The install tree: <prefix>/include/collet, lib/libcollet.so, lib/collet/backends, bin/collet,
# lib/libcollet_codegen.a, lib/libcollet_codegen_core.a, share/collet/templates, lib/cmake/Collet, lib/pkgconfig/collet.pc. It can be moved as a whole.
include(CMakePackageConfigHelpers)

set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Collet")

install(TARGETS collet_abi EXPORT ColletTargets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/sdk/include/collet" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.def")

if(TARGET collet)
  # The file has the name that programs look for, because wheels hold no links.
  set_target_properties(collet PROPERTIES VERSION ${PROJECT_VERSION_MAJOR} SOVERSION ${PROJECT_VERSION_MAJOR})
  # Finds libraries that a frontend's wheel puts into the same folder.
  collet_runpath(collet "${CMAKE_INSTALL_LIBDIR}" RUNPATH "$ORIGIN")
  target_link_options(collet PRIVATE -Wl,--exclude-libs,ALL)
  collet_check(NAME exports_libcollet LABELS abi
               COMMAND ${Python3_EXECUTABLE} sdk/cmake/check_exports.py --nm "${CMAKE_NM}" "$<TARGET_FILE:collet>" "collet_*")
  install(TARGETS collet EXPORT ColletTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET collet_tool)
  set_target_properties(collet_tool PROPERTIES OUTPUT_NAME collet)
  set(runpath "$ORIGIN/../lib" "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")  # of the build tree and of the install tree
  if(COLLET_PORTABLE)
    list(APPEND runpath "$ORIGIN/../${COLLET_INSTALL_LIBRARIES_DIR}")
  endif()
  list(REMOVE_DUPLICATES runpath)
  collet_runpath(collet_tool "${CMAKE_INSTALL_BINDIR}" RUNPATH ${runpath})
  install(TARGETS collet_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  add_dependencies(kit collet_tool)
endif()
file(GLOB templates LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/templates/*")
foreach(template IN LISTS templates)
  if(IS_DIRECTORY "${template}")
    install(DIRECTORY "${template}" DESTINATION "${COLLET_INSTALL_SHARE_DIR}/templates")
  endif()
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/conformance/waivers.txt" DESTINATION "${COLLET_INSTALL_SHARE_DIR}/conformance")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/share/collet")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/templates" "${PROJECT_BINARY_DIR}/share/collet/templates" SYMBOLIC)
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/sdk/pjrt/python" "${PROJECT_BINARY_DIR}/share/collet/python" SYMBOLIC)

# The Python module, at the same place in the build tree.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/sdk/python/collet" DESTINATION "${CMAKE_INSTALL_LIBDIR}/collet/python"
        FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/lib/collet/python")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}/sdk/python/collet" "${PROJECT_BINARY_DIR}/lib/collet/python/collet" SYMBOLIC)

if(TARGET collet_codegen_core)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/sdk/codegen/include/collet" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
foreach(component IN ITEMS codegen codegen_core)
  if(TARGET collet_${component})
    set(set "Collet_${component}")
    install(TARGETS collet_${component} EXPORT ${set}Targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    install(EXPORT ${set}Targets NAMESPACE Collet:: DESTINATION "${config_dir}")
    export(EXPORT ${set}Targets NAMESPACE Collet:: FILE "${PROJECT_BINARY_DIR}/${set}Targets.cmake")
  endif()
endforeach()
install(EXPORT ColletTargets NAMESPACE collet:: DESTINATION "${config_dir}")
configure_package_config_file(sdk/cmake/ColletConfig.cmake.in "${PROJECT_BINARY_DIR}/ColletConfig.cmake"
                              INSTALL_DESTINATION "${config_dir}" PATH_VARS COLLET_INSTALL_BACKENDS_DIR
                              NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ColletConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
foreach(file IN ITEMS ColletBackend.cmake ColletLLVM.cmake plugin_exports.map)
  configure_file(sdk/cmake/${file} "${PROJECT_BINARY_DIR}/${file}" COPYONLY)
  install(FILES sdk/cmake/${file} DESTINATION "${config_dir}")
endforeach()
install(FILES "${PROJECT_BINARY_DIR}/ColletConfig.cmake" "${PROJECT_BINARY_DIR}/ColletConfigVersion.cmake"
        DESTINATION "${config_dir}")

# collet.pc computes the prefix relative to its own folder.
string(REGEX REPLACE "[^/]+" ".." pc_to_prefix "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
configure_file(sdk/cmake/collet.pc.in "${PROJECT_BINARY_DIR}/collet.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/collet.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# Projects inside the build tree can use find_package(Collet) without an installation.
export(EXPORT ColletTargets NAMESPACE collet:: FILE "${PROJECT_BINARY_DIR}/ColletTargets.cmake")
