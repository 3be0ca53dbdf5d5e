// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/tensorflow/list_kernels.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sdk/pjrt/tensorflow/host.h"
#include "sdk/pjrt/tensorflow/kernel_builder.h"
#include "sdk/pjrt/tensorflow/tensorflow_cpp.h"

// Elements of a list that is in device memory are in device memory, too; TensorFlow copies them with the list. So operations on many
// elements take and return lists in host memory, where TensorFlow's kernels for its CPU compute them: they are few, before and
// after a loop. Operations on one element are in the loop, and only pass it on: they keep their lists in device memory.

struct TF_Tensor;

namespace collet::tensorflow {
namespace {

/// An operation on lists.
struct ListOp {
  const char* name;
  std::initializer_list<const char*> host;  ///< arguments and results in host memory
  bool reads_one = false;                   ///< returns one element of a list in device memory
};

const ListOp kOps[] = {
    {"TensorListConcat", {"input_handle", "tensor", "lengths"}},
    {"TensorListConcatV2", {"input_handle", "element_shape", "leading_dims", "tensor", "lengths"}},
    {"TensorListFromTensor", {"tensor", "element_shape", "output_handle"}},
    {"TensorListGather", {"input_handle", "indices", "element_shape", "values"}},
    {"TensorListGetItem", {"index", "element_shape"}, true},
    {"TensorListPopBack", {"element_shape"}, true},
    {"TensorListPushBackBatch", {"input_handles", "tensor", "output_handles"}},
    {"TensorListScatter", {"tensor", "indices", "element_shape", "output_handle"}},
    {"TensorListScatterIntoExistingList", {"input_handle", "tensor", "indices", "output_handle"}},
    {"TensorListScatterV2", {"tensor", "indices", "element_shape", "num_elements", "output_handle"}},
    {"TensorListSplit", {"tensor", "element_shape", "lengths", "output_handle"}},
    {"TensorListStack", {"input_handle", "element_shape", "tensor"}},
};

/// The element types for which TensorFlow has kernels on any device: float, double, int32, int64, bfloat16, half.
constexpr int kTypes[] = {1, 2, 3, 9, 14, 19};

// The following types have the layout of TensorFlow 2.21's C++ types.

struct Span {
  const void* data;
  size_t size;
};

/// tensorflow::OpKernelConstruction, which TensorFlow's C interface passes under another name.
struct Construction {
  DeviceType device_type;
  void* device;
  void* allocator;
  void* library;
  void* resources;
  std::shared_ptr<const void> properties;
  Span input_memory_types, output_memory_types;
  int graph_def_version;
};

/// tensorflow::OpKernel.
struct OpKernel {
  struct Functions {
    void (*destroy)(OpKernel*);
    void (*destroy_and_free)(OpKernel*);
    void (*compute)(OpKernel*, TF_OpKernelContext*);
  };
  const Functions* functions;
};

/// tensorflow::Tensor, which begins with a TensorShape. A list has one without an element type where no element was written.
struct Tensor {
  uint8_t shape[24];
  void* data;
  int type() const { return shape[13]; }
  bool is_written() const { return type() != 0; }
};
static_assert(sizeof(Tensor) == 32);

/// tensorflow::TensorList.
struct TensorList {
  struct Elements {
    void* functions;
    int references;
    std::vector<Tensor> values;
  };
  uint8_t element_shape[24];
  int element_type, most_elements;
  const Elements* elements;
};

/// tensorflow::OpKernelContext, and its parameters, which the executor makes for one run of one kernel.
struct Parameters {
  uint8_t before[40];
  void* device;
  uint8_t between[168];
  void* device_context;
};
static_assert(offsetof(Parameters, device) == 40 && offsetof(Parameters, device_context) == 216);
struct Context {
  uint8_t before[24];
  Parameters* parameters;
};

struct Device;
struct KeepDevice {
  void operator()(Device*) const {}
};
using DevicePointer = std::unique_ptr<Device, KeepDevice>;

struct Functions {
  void (*session_options)(void* self) = nullptr;
  DevicePointer (*new_device)(const std::string& type, const void* session_options,
                              const std::string& prefix) = nullptr;
  Status (*create)(DeviceType, void* device, void* allocator, void* library, void* resources,
                   const std::shared_ptr<const void>& properties, int version, OpKernel** out) = nullptr;
  Status (*input_list)(TF_OpKernelContext*, int index, const TensorList** out) = nullptr;
  Status (*output)(TF_OpKernelContext*, std::string_view name, Tensor** out) = nullptr;
  void (*construct_tensor)(void* self, void* allocator, int type, const void* shape) = nullptr;
  void (*destroy_tensor)(void* self) = nullptr;
  Status (*to_device)(const void* device_context, const Tensor* from, void* device, Tensor* to) = nullptr;
  void (*get_input)(TF_OpKernelContext*, int index, TF_Tensor** out, TF_Status*) = nullptr;
  void* (*data)(const TF_Tensor*) = nullptr;
  void (*delete_tensor)(TF_Tensor*) = nullptr;
  void (*construction_failure)(TF_OpKernelConstruction*, TF_Status*) = nullptr;
  void (*failure)(TF_OpKernelContext*, TF_Status*) = nullptr;
  TF_Status* (*new_status)() = nullptr;
  void (*delete_status)(TF_Status*) = nullptr;

  bool find() {
    session_options =
        c_function<std::remove_pointer_t<decltype(session_options)>>("_ZN10tensorflow14SessionOptionsC1Ev");
    new_device = c_function<std::remove_pointer_t<decltype(new_device)>>(
        "_ZN10tensorflow13DeviceFactory9NewDeviceERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKNS_"
        "14SessionOptionsES8_");
    create = c_function<std::remove_pointer_t<decltype(create)>>(
        "_ZN10tensorflow14CreateOpKernelEN3tsl10DeviceTypeEPNS_10DeviceBaseEPNS0_9AllocatorEPNS_"
        "22FunctionLibraryRuntimeEPNS_11ResourceMgrERKSt10shared_ptrIKNS_14NodePropertiesEEiPPNS_8OpKernelE");
    input_list = c_function<std::remove_pointer_t<decltype(input_list)>>(
        "_ZN10tensorflow12GetInputListEPNS_15OpKernelContextEiPPKNS_10TensorListE");
    output = c_function<std::remove_pointer_t<decltype(output)>>(
        "_ZN10tensorflow15OpKernelContext14mutable_outputESt17basic_string_viewIcSt11char_traitsIcEEPPNS_6TensorE");
    construct_tensor = c_function<std::remove_pointer_t<decltype(construct_tensor)>>(
        "_ZN10tensorflow6TensorC1EPN3tsl9AllocatorENS_8DataTypeERKNS_11TensorShapeE");
    destroy_tensor = c_function<std::remove_pointer_t<decltype(destroy_tensor)>>("_ZN10tensorflow6TensorD1Ev");
    to_device = c_function<std::remove_pointer_t<decltype(to_device)>>(
        "_ZNK10tensorflow13DeviceContext25CopyCPUTensorToDeviceSyncEPKNS_6TensorEPNS_6DeviceEPS1_");
    get_input = c_function<std::remove_pointer_t<decltype(get_input)>>("TF_GetInput");
    data = c_function<std::remove_pointer_t<decltype(data)>>("TF_TensorData");
    delete_tensor = c_function<std::remove_pointer_t<decltype(delete_tensor)>>("TF_DeleteTensor");
    construction_failure =
        c_function<std::remove_pointer_t<decltype(construction_failure)>>("TF_OpKernelConstruction_Failure");
    failure = c_function<std::remove_pointer_t<decltype(failure)>>("TF_OpKernelContext_Failure");
    new_status = c_function<std::remove_pointer_t<decltype(new_status)>>("TF_NewStatus");
    delete_status = c_function<std::remove_pointer_t<decltype(delete_status)>>("TF_DeleteStatus");
    return session_options && new_device && create && input_list && output && construct_tensor && destroy_tensor &&
           to_device && get_input && data && delete_tensor && construction_failure && failure && new_status &&
           delete_status;
  }
};
Functions functions;

/// Returns a device of TensorFlow's CPU, from which kernels get host memory; null if it cannot be made. It is kept.
Device* cpu() {
  static Device* const device = [] {
    alignas(64) static uint8_t options[1024];  // several times the size in TensorFlow 2.21
    functions.session_options(options);
    return functions.new_device("CPU", options, "/job:localhost/replica:0/task:0").release();
  }();
  return device;
}

/// TensorFlow's kernel of an operation for its CPU, and the device for which the operation was placed, with its memory.
struct Kernel {
  OpKernel* inner;
  void *device, *allocator;
};

void fail(TF_OpKernelContext* context, TF_Code code, const std::string& message) {
  TF_Status* const failed = functions.new_status();
  set_status(failed, code, "collet: " + message);
  functions.failure(context, failed);
  functions.delete_status(failed);
}

void* create(TF_OpKernelConstruction* context) {
  const auto& given = *reinterpret_cast<const Construction*>(context);
  OpKernel* inner = nullptr;
  if (Device* const device = cpu()) {
    const Status status = functions.create(DeviceType{"CPU"}, device, given.allocator, given.library, given.resources,
                                           given.properties, given.graph_def_version, &inner);
    if (status.word == 1 && inner) return new Kernel{inner, given.device, given.allocator};
  }
  TF_Status* const failed = functions.new_status();
  set_status(failed, TF_INTERNAL, "collet: TensorFlow makes no kernel for an operation on lists");
  functions.construction_failure(context, failed);
  functions.delete_status(failed);
  return nullptr;
}

/// Runs the kernel as if it were placed on the CPU: what it allocates is host memory. Returns whether it ran.
bool run_on_cpu(const Kernel& kernel, TF_OpKernelContext* context) {
  Parameters& parameters = *reinterpret_cast<const Context*>(context)->parameters;
  if (parameters.device != kernel.device) {
    fail(context, TF_INTERNAL, "an operation on lists runs on another device than it was made for");
    return false;
  }
  parameters.device = cpu();
  kernel.inner->functions->compute(kernel.inner, context);
  parameters.device = kernel.device;
  return true;
}

/// For operations all of whose arguments and results are in host memory.
void compute_on_cpu(void* self, TF_OpKernelContext* context) {
  run_on_cpu(*static_cast<const Kernel*>(self), context);
}

/// For operations that read an element which was not written: makes the zeros in host memory, and copies them to the device.
void read_zeros(const Kernel& kernel, TF_OpKernelContext* context, std::string_view result) {
  if (!run_on_cpu(kernel, context)) return;
  Tensor* zeros = nullptr;
  const Status found = functions.output(context, result, &zeros);
  if (found.word != 1 || !zeros) return;  // the kernel has reported an error
  alignas(Tensor) uint8_t storage[sizeof(Tensor)];
  functions.construct_tensor(storage, kernel.allocator, zeros->type(), zeros->shape);
  auto* const there = reinterpret_cast<Tensor*>(storage);
  void* const device_context = reinterpret_cast<const Context*>(context)->parameters->device_context;
  const Status copied = functions.to_device(device_context, zeros, kernel.device, there);
  std::swap(*zeros, *there);
  functions.destroy_tensor(there);
  if (copied.word != 1) fail(context, TF_INTERNAL, "zeros could not be copied to the device");
}

/// Runs the kernel where it was placed.
void compute(void* self, TF_OpKernelContext* context) {
  OpKernel* const inner = static_cast<const Kernel*>(self)->inner;
  inner->functions->compute(inner, context);
}

void destroy(void* self) {
  const std::unique_ptr<Kernel> kernel(static_cast<Kernel*>(self));
  if (kernel) kernel->inner->functions->destroy_and_free(kernel->inner);
}

/// Returns the index that an operation reads: its argument, or that of the last element.
int64_t index_read(TF_OpKernelContext* context, bool last, size_t count) {
  if (last) return static_cast<int64_t>(count) - 1;
  TF_Status* const status = functions.new_status();
  TF_Tensor* index = nullptr;
  functions.get_input(context, 1, &index, status);
  int32_t out = -1;
  if (index) {
    std::memcpy(&out, functions.data(index), sizeof out);
    functions.delete_tensor(index);
  }
  functions.delete_status(status);
  return out;
}

/// TensorFlow's kernel would write zeros for an element that was not written, as if the device's memory were the host's;
/// any other element it passes on.
template <bool kLast>
void read_one(void* self, TF_OpKernelContext* context) {
  const TensorList* list = nullptr;
  const Status status = functions.input_list(context, 0, &list);
  if (status.word == 1 && list) {
    const std::vector<Tensor>& values = list->elements->values;
    const int64_t index = index_read(context, kLast, values.size());
    if (index >= 0 && static_cast<size_t>(index) < values.size() && !values[static_cast<size_t>(index)].is_written()) {
      return read_zeros(*static_cast<const Kernel*>(self), context, kLast ? "tensor" : "item");
    }
  }
  compute(self, context);
}

}  // namespace

bool register_list_kernels(const std::string& device_type) {
  // Another version may have other layouts under the same names.
  if (!version().starts_with("2.21.")) return false;
  KernelBuilder builder;
  if (!functions.find() || !builder.find()) return false;
  for (const ListOp& op : kOps) {
    const std::string name = op.name;
    auto* const run = !op.reads_one ? compute_on_cpu : name == "TensorListPopBack" ? read_one<true> : read_one<false>;
    for (const int type : kTypes)
      builder.add({name.c_str(), device_type, op.host, "element_dtype", type, create, run, destroy});
  }
  return true;
}

}  // namespace collet::tensorflow
