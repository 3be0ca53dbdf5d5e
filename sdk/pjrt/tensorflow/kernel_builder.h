// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>

#include "sdk/pjrt/tensorflow/host.h"

struct TF_KernelBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;

namespace collet::tensorflow {

/// A kernel of an operation on a type of devices. The functions are those of TensorFlow's C interface.
struct KernelDescription {
  const char* op;
  const std::string& device_type;
  std::initializer_list<const char*> host;  ///< arguments and results in host memory
  const char* type_attribute = nullptr;     ///< the attribute that must have the value `type`; null: none
  int type = 0;
  void* (*create)(TF_OpKernelConstruction*) = nullptr;
  void (*compute)(void*, TF_OpKernelContext*) = nullptr;
  void (*destroy)(void*) = nullptr;
};

/// Registers kernels with TensorFlow.
class KernelBuilder {
 public:
  /// Looks up TensorFlow's functions; false if it lacks one.
  bool find() {
    make_ = c_function<Make>("TF_NewKernelBuilder");
    host_memory_ = c_function<void(TF_KernelBuilder*, const char*)>("TF_KernelBuilder_HostMemory");
    type_ = c_function<void(TF_KernelBuilder*, const char*, int, TF_Status*)>("TF_KernelBuilder_TypeConstraint");
    add_ = c_function<void(const char*, TF_KernelBuilder*, TF_Status*)>("TF_RegisterKernelBuilder");
    new_status_ = c_function<TF_Status*()>("TF_NewStatus");
    delete_status_ = c_function<void(TF_Status*)>("TF_DeleteStatus");
    return make_ && host_memory_ && type_ && add_ && new_status_ && delete_status_;
  }

  void add(const KernelDescription& kernel) const {
    TF_Status* const status = new_status_();
    TF_KernelBuilder* const builder =
        make_(kernel.op, kernel.device_type.c_str(), kernel.create, kernel.compute, kernel.destroy);
    for (const char* const name : kernel.host) host_memory_(builder, name);
    if (kernel.type_attribute) type_(builder, kernel.type_attribute, kernel.type, status);
    add_((kernel.device_type + kernel.op + std::to_string(kernel.type)).c_str(), builder, status);
    delete_status_(status);
  }

 private:
  using Make = TF_KernelBuilder*(const char* op, const char* device, void* (*create)(TF_OpKernelConstruction*),
                                 void (*compute)(void*, TF_OpKernelContext*), void (*destroy)(void*));
  Make* make_ = nullptr;
  void (*host_memory_)(TF_KernelBuilder*, const char*) = nullptr;
  void (*type_)(TF_KernelBuilder*, const char*, int, TF_Status*) = nullptr;
  void (*add_)(const char*, TF_KernelBuilder*, TF_Status*) = nullptr;
  TF_Status* (*new_status_)() = nullptr;
  void (*delete_status_)(TF_Status*) = nullptr;
};

}  // namespace collet::tensorflow
