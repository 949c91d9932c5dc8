// Closing a device ends what was made in it, as it does with a real one.
#include "doors/ibverbs/objects.hpp"

namespace fairlead::ibverbs {

std::vector<Channel*> all_channels();

namespace {

template <typename Object, typename Destroy>
void destroy_of(const OpenContext& context, Destroy destroy) {
  for (Object* each : table<Object>().all()) {
    if (&each->owner == &context) destroy(each);
  }
}

}  // namespace

void destroy_all_of(const OpenContext& context) {
  destroy_of<Pair>(context, [](Pair* pair) { ibv_destroy_qp(&pair->qp_base); });
  destroy_of<SharedReceive>(context, [](SharedReceive* queue) { ibv_destroy_srq(queue); });
  destroy_of<Address>(context, [](Address* address) { ibv_destroy_ah(address); });
  destroy_of<Region>(context, [](Region* region) { ibv_dereg_mr(region); });
  destroy_of<Queue>(context, [](Queue* queue) { ibv_destroy_cq(queue->face()); });
  for (Channel* channel : all_channels()) {
    if (&channel->owner == &context) ibv_destroy_comp_channel(channel);
  }
  destroy_of<Domain>(context, [](Domain* domain) { ibv_dealloc_pd(domain); });
}

}  // namespace fairlead::ibverbs
