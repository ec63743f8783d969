use gavel_policy::*;
use std::time::Instant;
fn main() {
    tch::set_num_threads(2);
    let config = ModelConfig { vocab_size: 259, hidden_size: 256, intermediate_size: 768, num_hidden_layers: 4, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 4096, rms_norm_eps: 1e-6, rope_theta: 10_000.0, tie_word_embeddings: true, initializer_range: 0.02, bos_token_id: None, eos_token_id: vec![2], pad_token_id: Some(0) };
    let model = Model::random(config, 0, Device::Cpu).unwrap();
    let ids = Tensor::arange(64 * 67, (Kind::Int64, Device::Cpu)).remainder(259).view([64, 67]);
    for manual in [false, true, false, true] {
        let x = model.hidden(&ids, &Padding::Right).unwrap().detach().view([-1, 256]).set_requires_grad(true);
        let w = Tensor::ones([256], (Kind::Float, Device::Cpu)).set_requires_grad(true);
        let s = Instant::now();
        for _ in 0..20 {
            let y = if manual {
                let r = x.norm_scalaropt_dim(2.0, [-1i64].as_slice(), true).square().f_mul_scalar(1.0 / 256.0).unwrap().f_add_scalar(1e-6).unwrap().rsqrt();
                &x * &r * &w
            } else { x.rms_norm([256], Some(&w), 1e-6) };
            y.sum(None).backward();
        }
        println!("norm manual {manual} {:?}", s.elapsed() / 20);
    }
    for _ in 0..6 {
        let s = Instant::now();
        let h = model.hidden(&ids, &Padding::Right).unwrap();
        let l = model.logits(&h.narrow(1, 35, 32)).unwrap().log_softmax(-1, None).narrow(2, 5, 1).mean(None);
        let f = s.elapsed();
        l.backward();
        println!("{:?} {:?}", f, s.elapsed());
    }
}
