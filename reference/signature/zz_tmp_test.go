package signature
import ("testing";"time";"fmt";"github.com/whconform/whconform/reference/wire";"crypto/hmac";"crypto/sha256")
func TestZZ(t *testing.T){
 sc,_:=New(StandardWebhooks()); s:=sc.(*scheme)
 key,_:=s.Key("a","whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
 in:=Input{ID:"msg_p5jXN8AQM9LWM0D4loKWxJek",Time:time.Unix(1614265330,0),Body:make([]byte,200)}
 hs,_:=s.Sign(in,key)
 _=hs
 h:=hmac.New(sha256.New,[]byte("24 bytes of a public key")); var sum [32]byte; content:=make([]byte,240)
 states:=key.states(HMACSHA256); st:=states.get()
 buf:=make([]byte,0,2000); m:=st.hash.(*midstate)
 dst:=make([]byte,0,128)
 in2:=in; in2.Timestamp="1614265330"
 w:=appendEncoded(nil,"base64",sum[:])
 ws:=string(w)
 fs:=[]struct{n string;f func()}{
 {"empty",func(){}},
 {"hmac",func(){h.Reset();h.Write(content);h.Sum(sum[:0])}},
 {"midstate",func(){m.begin();m.end(st.sum[:0],content[:240:240+0])}},
 {"midstate-buf",func(){b:=append(buf[:0],content...);m.begin();m.end(st.sum[:0],b)}},
 {"begin",func(){m.begin()}},
 {"chain",func(){m.appendChain(st.sum[:0])}},
 {"mac",func(){s.mac(st,&in)}},
 {"mac-ts",func(){s.mac(st,&in2)}},
 {"pool",func(){x:=states.get();states.put(x)}},
 {"enc",func(){dst=appendEncoded(dst[:0],s.spec.Encoding,sum[:])}},
 {"ts",func(){dst=s.appendTimestamp(dst[:0],&in)}},
 {"signer",func(){s.signer(key)}},
 {"AppendToken",func(){s.AppendToken(dst[:0],in,key)}},
 {"equal",func(){st.equal(ws,w)}},
 {"collect",func(){var c carried;s.collect(hs,&c)}},
 {"checkID",func(){checkID(in.ID)}},
 {"next",func(){s.grammar.next(ws)}},
 {"checkTS",func(){s.checkTimestamp(in2.Timestamp,in.Time)}},
 }
 r:=&wire.Request{Headers:hs,Body:in.Body,Size:200}
 v:=s.secret; keys:=[]Key{key}; sig,_:=wire.Get(hs,"webhook-signature")
 fs=append(fs,[]struct{n string;f func()}{
 {"read",func(){var i Input;s.read(r,&i)}},
 {"match",func(){if s.match(&in2,sig,keys)<0{panic(1)}}},
 {"matchHMAC",func(){if !s.matchHMAC(&in2,sig,v,&key){panic(1)}}},
 {"mac-ts+enc",func(){dst=appendEncoded(dst[:0],s.spec.Encoding,s.mac(st,&in2))}},
 {"mac-ts+enc into st",func(){appendEncoded(st.text[:0],s.spec.Encoding,s.mac(st,&in2))}},
 {"Verify",func(){s.Verify(r,in.Time,keys...)}},
 }...)
 best:=make([]time.Duration,len(fs))
 for r:=0;r<3000;r++{ for i,f:=range fs{ s:=time.Now(); for k:=0;k<50;k++{f.f()}; d:=time.Since(s); if best[i]==0||d<best[i]{best[i]=d}}}
 for i,f:=range fs{ fmt.Printf("%-20s %6.1f\n",f.n,float64(best[i])/50-float64(best[0])/50)}
}
