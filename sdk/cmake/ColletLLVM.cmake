# Links LLVM's archives into what needs LLVM. Collet's own build uses this file, and projects that set COLLET_STATIC_LLVM do.

# collet_link_llvm_archives(TARGET MACHINE...): whatever links the interface library TARGET gets the archives of LLVM, after
# find_package(LLVM), that make code for the given machines (LLVM's names, such as X86), or for those of its property
# COLLET_LLVM_TARGETS. Unused sections and symbols are removed. sdk/codegen/llvm/targets.cc refers to the machines weakly.
function(collet_link_llvm_archives target)
  foreach(machine IN LISTS ARGN)
    set(wanted "$<TARGET_PROPERTY:COLLET_LLVM_TARGETS>")
    set(is_wanted "$<OR:$<STREQUAL:${wanted},>,$<IN_LIST:${machine},${wanted}>>")
    foreach(part TargetInfo Target TargetMC AsmPrinter)
      target_link_options(${target} INTERFACE "$<${is_wanted}:-Wl,-u,LLVMInitialize${machine}${part}>")
    endforeach()
  endforeach()
  llvm_map_components_to_libnames(libraries ${ARGN} orcjit passes)
  target_link_libraries(${target} INTERFACE ${libraries})
  target_link_options(${target} INTERFACE -Wl,--gc-sections -Wl,--as-needed -Wl,--exclude-libs,ALL -Wl,--strip-all)

  if(CMAKE_SYSROOT)
    # LLVMSupport names libraries of the system by their paths there.
    get_target_property(libraries LLVMSupport INTERFACE_LINK_LIBRARIES)
    list(TRANSFORM libraries REPLACE "^/usr/" "${CMAKE_SYSROOT}/usr/")
    set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")
  endif()
  # Libraries that LLVM itself depends on are linked statically, too, if there are archives of them.
  foreach(library ZLIB::ZLIB=libz.a zstd::libzstd_shared=libzstd.a)
    string(REPLACE "=" ";" pair "${library}")
    list(GET pair 0 target)
    list(GET pair 1 file)
    find_library(COLLET_ARCHIVE_${file} ${file})
    mark_as_advanced(COLLET_ARCHIVE_${file})
    if(TARGET ${target} AND COLLET_ARCHIVE_${file})
      foreach(suffix "" _NONE _RELEASE _RELWITHDEBINFO _NOCONFIG)
        set_target_properties(${target} PROPERTIES IMPORTED_LOCATION${suffix} "${COLLET_ARCHIVE_${file}}")
      endforeach()
    endif()
  endforeach()
endfunction()
