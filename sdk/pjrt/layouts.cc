// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/layouts.h"

#include <memory>
#include <string>
#include <vector>

#include "sdk/pjrt/buffer.h"
#include "sdk/pjrt/call.h"
#include "sdk/pjrt/element_types.h"
#include "sdk/pjrt/executable.h"

struct PJRT_Layouts_MemoryLayout {
  size_t rank;
};

struct PJRT_Layouts_SerializedLayout {
  std::string text;
};

namespace collet::pjrt {
namespace {

PJRT_Layouts_MemoryLayout* shared_layout(size_t rank) {
  static std::vector<PJRT_Layouts_MemoryLayout>* const all = [] {
    auto* list = new std::vector<PJRT_Layouts_MemoryLayout>;
    for (size_t r = 0; r <= kMaxRank; ++r) list->push_back({r});
    return list;
  }();
  return rank < all->size() ? &(*all)[rank] : nullptr;
}

PJRT_Error* give(size_t rank, PJRT_Layouts_MemoryLayout*& out) {
  out = shared_layout(rank);
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
    for (size_t d = args.layout->rank; d-- > 0;) out->text += std::to_string(d) + (d ? "," : "");
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
  return run(caller, sizeof *caller, [](auto& args) { return give(args.buffer->type.rank, args.layout); });
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
  return shared_layout(rank);
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
