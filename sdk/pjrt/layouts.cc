// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/layouts.h"

#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sdk/pjrt/buffer.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/element_types.h"
#include "sdk/pjrt/executable.h"

struct PJRT_Layouts_SerializedLayout {
  std::string text;
};

namespace collet::pjrt {
namespace {

PJRT_Error* give(size_t rank, PJRT_Layouts_MemoryLayout*& out) {
  out = row_major(rank);
  return out ? nullptr : invalid_argument("an array of rank " + std::to_string(rank));
}

template <typename Args, typename Body>
PJRT_Error* run(Args* args, size_t least, const Body& body) {
  return guarded(args, "a layouts argument", least, sizeof(Args), body);
}

PJRT_Error* destroy(PJRT_Layouts_MemoryLayout_Destroy_Args*) {
  return nullptr;
}

PJRT_Error* serialize(PJRT_Layouts_MemoryLayout_Serialize_Args* caller) {
  return run(caller, sizeof *caller, [](PJRT_Layouts_MemoryLayout_Serialize_Args& args) -> PJRT_Error* {
    auto* out = new PJRT_Layouts_SerializedLayout{"{"};
    for (const int64_t d : args.layout->minor_to_major)
      out->text += (out->text.size() > 1 ? "," : "") + std::to_string(d);
    out->text += "}";
    args.serialized_bytes = out->text.data();
    args.serialized_bytes_size = out->text.size();
    args.serialized_layout = out;
    args.serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout* l) { delete l; };
    return nullptr;
  });
}

PJRT_Error* client_default(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args* caller) {
  return run(caller, sizeof *caller, [](auto& args) { return give(args.num_dims, args.layout); });
}

PJRT_Error* of_buffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* caller) {
  return run(caller, sizeof *caller, [](auto& args) -> PJRT_Error* {
    args.layout = args.buffer->layout;
    return nullptr;
  });
}

PJRT_Error* topology_default(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args* caller) {
  return run(caller, sizeof *caller, [](auto& args) { return give(args.num_dims, args.layout); });
}

PJRT_Error* of_outputs(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* caller) {
  return run(caller, sizeof *caller, [](PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args& args) -> PJRT_Error* {
    Compiled& c = *args.executable->program;
    args.num_outputs = c.output_layouts.size();
    args.layouts = c.output_layouts.data();
    return nullptr;
  });
}

PJRT_Error* of_parameters(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args* caller) {
  return run(caller, sizeof *caller, [](PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args& args) -> PJRT_Error* {
    Compiled& c = *args.executable->program;
    args.num_parameters = c.parameter_layouts.size();
    args.layouts = c.parameter_layouts.data();
    return nullptr;
  });
}

}  // namespace

PJRT_Layouts_MemoryLayout* row_major(size_t rank) {
  static const std::vector<PJRT_Layouts_MemoryLayout*>* const all = [] {
    auto* list = new std::vector<PJRT_Layouts_MemoryLayout*>;
    for (size_t r = 0; r <= kMaxRank; ++r)
      list->push_back(new PJRT_Layouts_MemoryLayout{{descending(r), descending(r) + r}});
    return list;
  }();
  return rank < all->size() ? (*all)[rank] : nullptr;
}

bool is_row_major(const PJRT_Layouts_MemoryLayout* layout) {
  return layout == row_major(layout->minor_to_major.size());
}

PJRT_Layouts_MemoryLayout* layout_of(std::vector<int64_t> minor_to_major) {
  PJRT_Layouts_MemoryLayout* usual = row_major(minor_to_major.size());
  if (usual && usual->minor_to_major == minor_to_major) return usual;
  static std::mutex mutex;
  static auto* const others = new std::map<std::vector<int64_t>, PJRT_Layouts_MemoryLayout>;
  const std::lock_guard lock(mutex);
  return &others->try_emplace(minor_to_major, PJRT_Layouts_MemoryLayout{minor_to_major}).first->second;
}

PJRT_Layouts_MemoryLayout* layout_of(const char* text, size_t rank) {
  std::vector<int64_t> order;
  while (text && *text++) {
    int64_t d = 0;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), d);
    if (error != std::errc()) break;
    order.push_back(d);
    text = end;
  }
  return order.size() == rank ? layout_of(std::move(order)) : row_major(rank);
}

PJRT_Buffer_MemoryLayout to_struct(const PJRT_Layouts_MemoryLayout& layout) {
  PJRT_Buffer_MemoryLayout out{};
  out.struct_size = sizeof out;
  out.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  out.tiled.struct_size = sizeof out.tiled;
  out.tiled.minor_to_major = layout.minor_to_major.data();
  out.tiled.minor_to_major_size = layout.minor_to_major.size();
  return out;
}

PJRT_Extension_Base* layouts_extension(PJRT_Extension_Base* next) {
  static PJRT_Layouts_Extension extension = {{sizeof(PJRT_Layouts_Extension), PJRT_Extension_Type_Layouts, nullptr},
                                             destroy,
                                             serialize,
                                             client_default,
                                             of_buffer,
                                             topology_default,
                                             of_outputs,
                                             of_parameters};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace collet::pjrt
