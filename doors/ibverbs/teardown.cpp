// Closing a device destroys the objects that were made in it, as with a real device.
#include "doors/ibverbs/device_memory.hpp"
#include "doors/ibverbs/objects.hpp"
#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {

namespace {

template <typename Object, typename Destroy>
void destroy_of(const OpenContext& context, Destroy destroy) {
  for (const std::uint32_t handle : table<Object>().all()) {
    const Call call;
    Object* each = table<Object>().find(handle);
    if (each != nullptr && &each->owner == &context) destroy(each);
  }
}

}  // namespace

void destroy_all_of(const OpenContext& context) {
  destroy_of<Pair>(context, [](Pair* pair) { ibv_destroy_qp(&pair->qp_base); });
  destroy_of<SharedReceive>(context, [](SharedReceive* queue) { ibv_destroy_srq(queue); });
  for (XrcDomain* domain : registry<XrcDomain>().all()) {
    const Call call;
    if (find(domain) != nullptr && &domain->owner == &context) close_xrc_domain(domain);
  }
  destroy_of<Address>(context, [](Address* address) { ibv_destroy_ah(address); });
  destroy_of<Window>(context, [](Window* window) { remove_window(window); });
  destroy_of<Region>(context,
                     [](Region* region) { region->native ? void(ibv_dereg_mr(region)) : ibv_unimport_mr(region); });
  destroy_of<Queue>(context, [](Queue* queue) { ibv_destroy_cq(queue->face()); });
  for (Channel* channel : registry<Channel>().all()) {
    const Call call;
    if (find(channel) != nullptr && &channel->owner == &context) ibv_destroy_comp_channel(channel);
  }
  destroy_of<DeviceMemory>(
      context, [](DeviceMemory* memory) { memory->is_imported ? ibv_unimport_dm(memory) : void(ibv_free_dm(memory)); });
  destroy_of<Domain>(context, [](Domain* domain) {
    if (domain->is_imported) {
      ibv_unimport_pd(domain);
    } else if (domain->base != nullptr) {
      ibv_dealloc_pd(domain);
    }
  });
  destroy_of<Domain>(context, [](Domain* domain) { ibv_dealloc_pd(domain); });
}

}  // namespace fairlead::ibverbs
